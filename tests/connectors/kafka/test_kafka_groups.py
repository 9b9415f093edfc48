"""The consumer group shows what is committed, and never more than the slowest query that reads the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.kafka import Cluster

from millstream.connectors.kafka.source import KafkaSourceRun
from millstream.errors import RunError
from millstream.observe.facts import Snapshot
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    name: {name}
    sources:
      m: {{type: kafka, bootstrap_servers: "{address}", topic: {topic}, format: string, mode: {{type: bounded}}}}
    transforms:
      counted: {{type: aggregate, from: m, key_by: value, aggregate: {{n: count(*)}}}}
      checked: {{type: sql, sql: "SELECT {check} AS value FROM m"}}
    sinks:
      totals: {{type: blackhole, from: counted}}
      out: {{type: blackhole, from: checked}}
"""


def text(kafka: Cluster, topic: str, check: str = "value") -> str:
    return TEXT.format(name=topic, address=kafka.address, topic=topic, check=check)


def test_offsets_are_committed_to_the_group(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, ["a", "b", "c"])
    kafka.send(topic, ["d"], partition=1)
    run(pipeline(text(kafka, topic)))
    assert kafka.group(f"millstream.{topic}.m") == {(topic, 0): 3, (topic, 1): 1}


def test_the_report_says_how_much_is_left(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topic, seen = kafka.topic(), []
    kafka.send(topic, ["a"] * 5)

    def watch(snapshot: Snapshot) -> None:
        seen.append(snapshot.nodes["m"].waiting if "m" in snapshot.nodes else None)

    one = text(kafka, topic).replace("format: string,", "format: string, max_rows_per_epoch: 2,")
    report = run(pipeline(one), watch=watch)
    assert report.nodes["m"].waiting == 0
    assert report.as_dict()["nodes"]["m"]["waiting"] == 0
    assert any(seen)


def test_a_query_that_fails_holds_the_group_back(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topic = kafka.topic()
    kafka.send(topic, ["a", "b"])
    with pytest.raises(RunError):
        run(pipeline(text(kafka, topic, "CAST(value AS INT)")))
    assert kafka.group(f"millstream.{topic}.m") == {}


def test_offsets_that_the_group_did_not_accept_are_reported_again(
    kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, reported, on_commit = kafka.topic(), [], KafkaSourceRun.on_commit

    def refused_once(self: KafkaSourceRun, spark: Any, offset: Any) -> None:
        reported.append(offset)
        if len(reported) == 1:
            raise OSError("the group's coordinator is away")
        on_commit(self, spark, offset)

    kafka.send(topic, ["a", "b"])
    monkeypatch.setattr(KafkaSourceRun, "on_commit", refused_once)
    report = run(pipeline(text(kafka, topic)))
    assert kafka.group(f"millstream.{topic}.m") == {(topic, 0): 2}
    assert any("did not accept its committed offset: the group's coordinator is away" in note for note in report.notes)
