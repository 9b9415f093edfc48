"""Real-time mode: messages are handed on within milliseconds; what it cannot do is refused with the reason."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.servers.kafka import Cluster

from millstream.engine.engine import SparkEngine
from millstream.engine.run.real_time import RealTimeQuery
from millstream.engine.run.state import QueryEvent
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = """
    name: {name}
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      orders: {{type: kafka, topic: {source}, format: json, schema: {{id: int64, amount: float64}}}}
    transforms:
      large: {{type: filter, from: orders, where: amount > 10}}
    sinks:
      alerts: {{type: kafka, from: large, topic: {target}, key: [id], guarantee: at_least_once}}
    settings: {{trigger: {trigger}}}
"""


@contextmanager
def running(spark: SparkSession, topology: Topology) -> Iterator[list[Report]]:
    stop, reports = threading.Event(), list[Report]()
    thread = threading.Thread(target=lambda: reports.append(SparkEngine(spark).run(topology, RunOptions(stop=stop))))
    thread.start()
    try:
        yield reports
    finally:
        stop.set()
        thread.join(60)


def arrived(kafka: Cluster, topic: str) -> list[Any]:
    return sorted((json.loads(message.value()) for message in kafka.messages(topic)), key=lambda row: row["id"])


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_traced_message_has_its_header(kafka: Cluster, spark: SparkSession, pipeline: Callable[..., Topology]) -> None:
    source, target = kafka.topic(2), kafka.topic(1)
    text = TEXT.format(name="traced", address=kafka.address, source=source, target=target, trigger="{type: real_time, every: 5s}")
    with running(spark, pipeline(text.replace("format: json", "format: json, telemetry: {trace: always}"))):
        kafka.send(source, [{"id": 1, "amount": 20.0}])
        wait_for(lambda: bool(arrived(kafka, target)))
    (message,) = kafka.messages(target)
    assert dict(message.headers() or ())["traceparent"].startswith(b"00-")
    assert json.loads(message.value()) == {"id": 1, "amount": 20.0}


def test_messages_arrive_before_their_epoch_ends_and_a_stop_repeats_none(
    kafka: Cluster, spark: SparkSession, pipeline: Callable[..., Topology]
) -> None:
    source, target = kafka.topic(2), kafka.topic(1)
    options = {"name": "repeated", "address": kafka.address, "source": source, "target": target}
    real_time, plain = "{type: real_time, every: 5s}", "{type: available_now}"
    with running(spark, pipeline(TEXT.format(**options, trigger=real_time))) as reports:
        kafka.send(source, [{"id": 1, "amount": 20.0}, {"id": 2, "amount": 1.0}])
        wait_for(lambda: len(arrived(kafka, target)) == 1)
        assert not reports
    (report,) = reports
    assert report.state == "stopped"
    assert report.nodes["orders"].rows_out == 2
    kafka.send(source, [{"id": 3, "amount": 30.0}], partition=1)
    assert SparkEngine(spark).run(pipeline(TEXT.format(**options, trigger=plain)), RunOptions()).nodes["orders"].rows_out == 1
    with running(spark, pipeline(TEXT.format(**options, trigger=real_time))):
        kafka.send(source, [{"id": 4, "amount": 40.0}], partition=1)
        wait_for(lambda: len(arrived(kafka, target)) >= 3)
    assert [row["id"] for row in arrived(kafka, target)] == [1, 3, 4]
    wait_for(lambda: kafka.group("millstream.repeated.orders") == {(source, 0): 2, (source, 1): 2})


def test_a_stop_before_the_progress_of_an_epoch_is_known_does_not_end_the_next_one(
    kafka: Cluster, spark: SparkSession, pipeline: Callable[..., Topology], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, target = kafka.topic(1), kafka.topic(1)
    options = {"name": "late", "address": kafka.address, "source": source, "target": target}
    collect, ended = RealTimeQuery._collect, list[float]()

    def collect_late(self: RealTimeQuery) -> None:
        if list(tmp_path.glob("**/commits/0")):
            ended.append(time.monotonic())
        if ended and time.monotonic() > ended[0] + 2:
            collect(self)

    monkeypatch.setattr(RealTimeQuery, "_collect", collect_late)
    with running(spark, pipeline(TEXT.format(**options, trigger="{type: real_time, every: 5s}"))):
        wait_for(lambda: bool(ended))
        kafka.send(source, [{"id": 1, "amount": 20.0}])
        wait_for(lambda: len(arrived(kafka, target)) == 1)
    monkeypatch.undo()
    SparkEngine(spark).run(pipeline(TEXT.format(**options, trigger="{type: available_now}")), RunOptions())
    assert [row["id"] for row in arrived(kafka, target)] == [1]


def test_more_partitions_than_slots_are_refused(kafka: Cluster, spark: SparkSession, pipeline: Callable[..., Topology]) -> None:
    topology = pipeline(
        TEXT.format(name="wide", address=kafka.address, source=kafka.topic(64), target=kafka.topic(1), trigger="{type: real_time}")
    )
    with pytest.raises(MillstreamError) as refused:
        SparkEngine(spark).run(topology, RunOptions())
    (error,) = refused.value.diagnostics
    assert error.code == "MS075"
    assert "64 partitions" in error.message
    assert "local[64]" in error.help


def test_after_a_stop_no_task_hands_anything_on(
    kafka: Cluster, spark: SparkSession, pipeline: Callable[..., Topology], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's own stop returns while tasks live on; the longest that one is seen to, it is waited for."""
    left: list[int] = []
    move = RealTimeQuery._move

    def moving(self: RealTimeQuery, event: QueryEvent) -> None:
        if event is QueryEvent.HALTED:
            left.append(self._active_tasks())
        move(self, event)

    monkeypatch.setattr(RealTimeQuery, "_move", moving)
    source, target = kafka.topic(2), kafka.topic(1)
    text = TEXT.format(name="failing", address=kafka.address, source=source, target=target, trigger="{type: real_time, every: 5s}")
    with running(spark, pipeline(text)):
        kafka.send(source, [{"id": 1, "amount": 20.0}])
        wait_for(lambda: len(arrived(kafka, target)) == 1)
    assert left == [0]
