"""The spans of an epoch follow from its events and from the passages of its traced records."""

from __future__ import annotations

from millstream.inspector.export.spans import LINKS, OpenEpoch, Span, child
from millstream.observe.events import EpochCommitted, EpochFinished, EpochPlanned, EpochStaged, Event, Failed
from millstream.observe.traced import Passage, TracedRecords
from millstream.spec.loader import loads

TOPOLOGY = loads(
    """
sources: {orders: {type: generator, rows: 1, fields: {id: {type: sequence}}}}
transforms:
  big: {type: filter, from: orders, where: id > 1}
  counted: {type: aggregate, from: big, key_by: [id], aggregate: {n: count(*)}}
sinks: {out: {type: blackhole, from: big}, totals: {type: blackhole, from: counted}}
"""
).require()
SECOND = 1_000_000_000


def parent_of(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def passage(node: str, seconds: float, number: int = 1, parent: str = "") -> Passage:
    return Passage(node, int(seconds * SECOND), parent_of(number), parent, "")


def spans(*passages: Passage, error: str = "") -> dict[str, list[Span]]:
    epoch = OpenEpoch("shop", EpochPlanned(at=1.0, query="orders", epoch=3, planned_at=0.5))
    epoch.add(EpochStaged(at=3.0, query="orders", epoch=3, sink="out", seconds=1.5, rows=7))
    epoch.add(EpochCommitted(at=4.0, query="orders", epoch=3, sinks=("out",), seconds=0.5))
    finished = EpochFinished(at=4.5, query="orders", epoch=3, seconds=3.5, rows_out={})
    end: Event = Failed(at=5.0, code="MS061", message="no disk") if error else finished
    found: dict[str, list[Span]] = {}
    for span in epoch.spans(TOPOLOGY, passages, end, error):
        found.setdefault(span.name, []).append(span)
    return found


def test_an_epoch_lasts_from_its_plan_to_its_end_with_a_span_for_each_step() -> None:
    found = spans()
    (epoch,), (stage,), (commit,) = found["epoch"], found["stage out"], found["commit out"]
    assert (epoch.start, epoch.end, epoch.parent) == (SECOND, int(4.5 * SECOND), "")
    assert (stage.start, stage.end, stage.parent) == (int(1.5 * SECOND), 3 * SECOND, epoch.context.span)
    assert (commit.start, commit.end, commit.context.trace) == (int(3.5 * SECOND), 4 * SECOND, epoch.context.trace)
    assert stage.attributes["millstream.rows"] == 7


def test_a_record_lasts_from_its_source_to_the_commit() -> None:
    found = spans(passage("orders", 2.0), passage("big", 2.2), passage("out", 2.3))
    record, big, out = (next(span for span in found[name] if span.context.trace == f"{1:032x}") for name in ("orders", "big", "out"))
    assert (record.start, record.end, record.kind) == (2 * SECOND, 4 * SECOND, "consumer")
    assert (big.start, big.end) == (2 * SECOND, int(2.2 * SECOND))
    assert (out.start, out.end, out.kind) == (int(2.3 * SECOND), 4 * SECOND, "producer")
    assert big.parent == out.parent == record.context.span == f"{1:016x}"
    assert big.context.span == child(record.context.span, "big")


def test_a_record_continues_the_trace_that_it_came_with() -> None:
    given = f"00-{1:032x}-{99:016x}-01"
    found = spans(passage("orders", 2.0, parent=given))
    assert [span.parent for span in found["orders"] if span.context.trace == f"{1:032x}"] == [f"{99:016x}"]


def test_a_node_in_which_records_become_one_links_those_that_reached_it() -> None:
    found = spans(*(passage(name, 2.0, number) for number in range(1, 4) for name in ("orders", "big")))
    (counted,) = found["counted"]
    assert [link.trace for link in counted.links] == [f"{number:032x}" for number in range(1, 4)]
    assert counted.parent == found["epoch"][0].context.span


def test_links_are_limited() -> None:
    found = spans(*(passage(name, 2.0, number) for number in range(1, LINKS + 10) for name in ("orders", "big")))
    assert len(found["counted"][0].links) == LINKS
    assert found["counted"][0].attributes["millstream.traced_records"] == LINKS + 9


def test_a_record_beyond_the_limit_of_its_source_has_no_spans() -> None:
    assert all(span.context.trace != f"{1:032x}" for each in spans(passage("big", 2.0)).values() for span in each)


def test_a_node_that_is_computed_twice_is_passed_once() -> None:
    found = spans(passage("orders", 2.0), passage("big", 2.2), passage("orders", 2.5), passage("big", 2.6))
    assert len([span for span in found["big"] if span.context.trace == f"{1:032x}"]) == 1


def test_a_failed_epoch_says_why_and_leaves_its_records_to_the_repetition() -> None:
    found = spans(passage("orders", 2.0), error="MS061: no disk")
    assert found["epoch"][0].error == "MS061: no disk"
    assert found["epoch"][0].end == 5 * SECOND
    assert all(span.context.trace == found["epoch"][0].context.trace for each in found.values() for span in each)


def test_an_epoch_has_the_same_ids_when_it_is_repeated() -> None:
    ids = [{span.context for each in spans(passage("orders", at)).values() for span in each} for at in (2.0, 2.4)]
    assert ids[0] == ids[1]


def test_what_waits_for_the_sender_is_limited() -> None:
    traced = TracedRecords()
    line = f"orders\t1\t{parent_of(1)}\t\t{'x' * 9_000_000}"
    for epoch in range(5):
        traced.put("orders", epoch, line)
    found, lost = traced.take()
    assert ([epoch for _, epoch in found], lost) == ([2, 3, 4], 2)
    assert found["orders", 4][0].payload.startswith("xx")
    assert traced.take() == ({}, 0)
