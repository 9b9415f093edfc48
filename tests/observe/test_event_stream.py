"""Events reach every reader in order. A reader that stalls loses the oldest ones, learns how many, and holds up nobody."""

from __future__ import annotations

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.observe import events
from millstream.observe.events import Noted, as_dict, from_dict
from millstream.observe.facts import WatermarkFacts
from millstream.observe.recorder import Recorder
from millstream.observe.stream import EventStream, Reader


@given(st.lists(st.one_of(st.integers(0, 9), st.none()), max_size=60), st.integers(1, 8))
def test_a_reader_has_the_newest_events_in_order_and_the_number_of_the_lost(steps: list[int | None], capacity: int) -> None:
    reader, waiting, lost = Reader(capacity), list[int](), 0
    for step in steps:
        if step is None:
            found, missed = reader.take()
            assert ([int(each.message) for each in found if isinstance(each, Noted)], missed) == (waiting, lost)
            waiting, lost = [], 0
        else:
            reader.put(Noted(message=str(step)))
            lost += len(waiting) == capacity
            waiting = [*waiting, step][-capacity:]


def test_readers_that_come_and_go_leave_nothing_behind() -> None:
    stream = EventStream()
    for _ in range(1000):
        stream.close(stream.open())
    assert stream.readers == 0


def test_each_reader_has_all_events_while_several_threads_publish() -> None:
    stream = EventStream()
    readers = [stream.open(10_000) for _ in range(50)]
    threads = [threading.Thread(target=lambda: [stream.publish(Noted(message="x")) for _ in range(100)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(reader.take()[0]) for reader in readers] == [400] * 50


@pytest.mark.parametrize(
    "event",
    [
        events.RunStarted(pipeline="p", run="r", process=7, checkpoint="/c"),
        events.EpochCommitted(query="q", epoch=3, sinks=("a", "b"), seconds=0.5),
        events.EpochFinished(query="q", epoch=3, seconds=1, rows_out={"a": 0}, watermark=WatermarkFacts(5, 1.5, "s")),
        events.EpochFinished(query="q", epoch=4, seconds=1, rows_out={}),
        events.RowsRead(query="q", rows={"s": None}),
        events.Restarting(query="", message="m", attempt=1, pause=0.5),
    ],
)
def test_an_event_survives_json(event: events.Event) -> None:
    assert from_dict(json.loads(json.dumps(as_dict(event)))) == event


def test_events_of_other_versions_are_left_out() -> None:
    known = as_dict(Noted(message="m"))
    assert from_dict(known | {"more": 1}) == from_dict(known)
    assert from_dict(known | {"v": 99}) is None
    assert from_dict(known | {"event": "unheard_of"}) is None
    assert from_dict({"v": events.VERSION, "event": "noted"}) is None


def test_what_is_recorded_is_published_once() -> None:
    recorder = Recorder("p")
    reader = recorder.events.open()
    recorder.state("running")
    recorder.set("s", "source", waiting=3)
    recorder.set("s", "source", waiting=3)
    recorder.warn("look")
    recorder.measure()
    kinds = [events.kind_of(event) for event in reader.take()[0]]
    assert kinds == ["run_changed", "node_changed", "noted", "measured"]
