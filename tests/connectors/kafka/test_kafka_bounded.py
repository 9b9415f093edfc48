"""A bounded source ends where the topic ended at its first start, whatever comes meanwhile and however often it is started."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.kafka import Cluster

from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
Read = Callable[..., list[dict[str, object]]]


def values(rows: list[dict[str, object]]) -> list[object]:
    return sorted(row["value"] for row in rows)  # type: ignore[type-var]  # all of them are texts


def test_a_run_that_was_stopped_goes_on_to_the_end_of_the_first_start(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, ["a", "b", "c"])
    kafka.send(topic, ["d"], partition=1)
    stop, seen = threading.Event(), []

    def watch(snapshot: object) -> None:
        if any(query.epochs for query in snapshot.queries.values()):  # type: ignore[attr-defined]  # a snapshot
            seen.append(1)
            stop.set()

    options = f"topic: {topic}, format: string, max_rows_per_epoch: 1"
    first = read(options, stop=stop, watch=watch)
    assert 0 < len(first) < 4
    kafka.send(topic, ["late"] * 3)
    kafka.send(topic, ["later"], partition=1)
    assert values(read(options)) == ["a", "b", "c", "d"]


def test_what_comes_after_the_end_is_never_read(kafka: Cluster, read: Read) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a"])
    assert values(read(f"topic: {topic}, format: string")) == ["a"]
    kafka.send(topic, ["b"])
    assert values(read(f"topic: {topic}, format: string")) == ["a"]


def test_without_an_end_the_same_messages_are_read(kafka: Cluster, read: Read) -> None:
    """The negative control of the test above."""
    topic = kafka.topic()
    kafka.send(topic, ["a"])
    assert values(read(f"topic: {topic}, format: string", endless=True)) == ["a"]
    kafka.send(topic, ["b"])
    assert values(read(f"topic: {topic}, format: string", endless=True)) == ["a", "b"]


@pytest.mark.parametrize(("until", "rows"), [("{0: 1}", ["a"]), ("latest", ["a", "b"]), ("2020-01-01", [])])
def test_the_end_can_be_chosen(kafka: Cluster, read: Read, until: str, rows: list[str]) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a", "b"])
    assert values(read(f"topic: {topic}, format: string", until=until)) == rows


@pytest.mark.parametrize("until", ["{0: 5}", "2999-01-01T00:00:00Z", "earliest"])
def test_an_end_that_is_not_there_is_refused(kafka: Cluster, read: Read, until: str) -> None:
    topic = kafka.topic()
    with pytest.raises(RunError, match="MS093"):
        read(f"topic: {topic}, format: string", until=until)


def test_an_empty_topic_is_over_at_once(kafka: Cluster, read: Read) -> None:
    assert read(f"topic: {kafka.topic()}, format: string") == []


def test_a_bounded_source_with_state_is_flushed(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, [{"k": "a", "at": "2026-01-01T00:00:01Z"}, {"k": "a", "at": "2026-01-01T00:00:02Z"}])
    kafka.send(topic, [{"k": "b", "at": "2026-01-01T00:00:59Z"}], partition=1)
    text = f"""
        sources:
          m:
            type: kafka
            bootstrap_servers: "{kafka.address}"
            topic: {topic}
            format: json
            schema: {{k: string, at: timestamp}}
            event_time: {{column: at}}
            mode: {{type: bounded}}
        transforms:
          counted: {{type: window, from: m, key_by: k, window: {{type: tumbling, size: 1m}}, aggregate: {{n: count(*)}}}}
        sinks:
          out: {{type: file, from: counted, path: out, format: csv}}
    """
    run(pipeline(text))
    lines = [line for file in Path("out").glob("*.csv") for line in file.read_text().splitlines()[1:]]
    assert sorted(line.split(",")[0] + line.split(",")[-1] for line in lines) == ["a2", "b1"]
