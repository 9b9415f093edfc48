"""What happens around a sink while it runs: copies, slow lanes, topics that change, state above it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.connectors.kafka.stage import TEXT, Stage, only_large, stage
from tests.servers.kafka import Cluster

from millstream.connectors.kafka.sink import KafkaSinkRun
from millstream.connectors.kafka.worker import lanes
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
__all__ = ["stage"]
WINDOWS = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      m:
        type: kafka
        topic: {source}
        format: json
        schema: {{k: string, n: int64, at: int64}}
        max_rows_per_epoch: 30
        mode: {{type: bounded}}
        event_time: {{column: at, unit: s, watermark: 1s}}
    transforms:
      sums: {{type: window, from: m, key_by: [k], window: {{type: tumbling, size: 10s}}, aggregate: {{total: sum(n)}}, late: drop}}
    sinks:
      out: {{type: kafka, from: sums, topic: {target}, key: k, lanes: 4}}
    settings: {{checkpoint: checkpoint}}
"""
TWO = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      m: {{type: kafka, topic: {source}, format: json, schema: {{k: string, n: int64}}, max_rows_per_epoch: 30, mode: {{type: bounded}}}}
    transforms:
      even: {{type: filter, from: m, where: n % 2 = 0}}
    sinks:
      all: {{type: kafka, from: m, topic: {target}, key: k}}
      some: {{type: kafka, from: even, topic: {other}, key: k, guarantee: at_least_once}}
"""


def test_of_two_copies_the_older_one_ends_and_no_row_comes_twice(stage: Stage) -> None:
    values = {"address": stage.kafka.address, "source": stage.source, "target": stage.target, "options": "lanes: 4"}
    text = TEXT.format(**values, sql="SELECT * FROM m").replace("trigger: {type: available_now}", "trigger: {type: continuous}")
    (stage.folder / "older").mkdir()
    (stage.folder / "older/p.yaml").write_text(text)
    command = [sys.executable, "-m", "millstream.cli", "run", "p.yaml", "--profile", "short"]
    older = subprocess.Popen(command, cwd=stage.folder / "older", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        stage.send(20)
        _until(lambda: len(stage.rows()) == 20 and _committed(stage.folder / "older/checkpoint", 0))
        older.send_signal(signal.SIGSTOP)
        for name in ("checkpoint", "out"):
            shutil.copytree(stage.folder / "older" / name, stage.folder / name)
        stage.go(20)
        older.send_signal(signal.SIGCONT)
        _, said = older.communicate(timeout=300)
    finally:
        older.kill()
    assert older.returncode == 1 and "MS095" in said.decode()
    assert stage.once()


@pytest.mark.parametrize("large", [False, True])
def test_a_lane_that_takes_too_long_says_which_option_helps(stage: Stage, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    def slow(point: str, lane: int) -> None:
        if point == "producing":
            time.sleep(3.5)

    with monkeypatch.context() as patched:
        patched.setattr(lanes, "reach_point", slow)
        if large:
            only_large(patched)
        failure = stage.failure(20, options="lanes: 2, transaction_timeout: 1s")
    assert failure.code == "MS098" and "`transaction_timeout`" in failure.message
    assert str(failure.detail).startswith("lane " if large else "the lane of small epochs took ") and "lane -1" not in str(failure.detail)
    assert stage.rows() == []
    stage.go(10, "lanes: 2")
    assert stage.once()


def test_a_topic_that_goes_away_in_the_middle_of_an_epoch_ends_the_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaSinkRun, "commit", _meddling(stage, again=False))
    assert stage.code(70) in {"MS091", "MS094", "MS096"}  # by what is found missing first: the topic, its identity, or its markers


def test_a_topic_that_is_made_again_is_refused_at_the_next_start_at_the_latest(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(KafkaSinkRun, "commit", _meddling(stage, again=True))
        stage.go(70)  # an open producer does not notice
    assert stage.code(5) == "MS094"


def _meddling(stage: Stage, again: bool) -> Callable[..., None]:
    commit = KafkaSinkRun.commit

    def meddling(self: Any, staged: Any, epoch: Any) -> None:
        if epoch.number == 1:
            stage.kafka.delete(stage.target)
            if again:
                stage.kafka.topic(4, name=stage.target)
            else:
                _await_deletion(stage)
        commit(self, staged, epoch)

    return meddling


def _await_deletion(stage: Stage) -> None:
    """The broker answers first and deletes then: meanwhile it takes messages."""
    consumer = Consumer({"bootstrap.servers": stage.kafka.address, "group.id": "looking"})
    try:
        for _ in range(100):
            consumer.get_watermark_offsets(TopicPartition(stage.target, 0), timeout=5)
            time.sleep(0.05)
    except KafkaException:
        return
    finally:
        consumer.close()
    raise AssertionError("the topic is still there")


def test_partitions_that_are_added_are_used_at_the_next_start(stage: Stage) -> None:
    stage.go(30)
    stage.kafka.partitions(stage.target, 16)
    stage.go(30)
    assert max(message.partition() for message in stage.kafka.messages(stage.target)) >= 4
    assert sorted(row["n"] for row in stage.rows()) == list(range(60))


def test_windows_of_an_epoch_that_failed_half_way_are_there_once(
    stage: Stage, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.kafka.send(stage.source, [{"k": f"k{n % 5}", "n": 1, "at": n} for n in range(100)])
    text = WINDOWS.format(address=stage.kafka.address, source=stage.source, target=stage.target)
    stage.half_done(monkeypatch, 0, text=text)
    assert 0 < len(stage.rows()) < 50
    run(pipeline(text))
    totals = [(row["k"], row["window_start"], row["total"]) for row in stage.rows()]
    assert len(totals) == len(set(totals)) == 50 and sum(total for _, _, total in totals) == 100


def test_two_sinks_report_each_for_itself(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    source, target, other = kafka.topic(), kafka.topic(2), kafka.topic(2)
    kafka.send(source, [{"k": f"k{n % 5}", "n": n} for n in range(50)])
    report = run(pipeline(TWO.format(address=kafka.address, source=source, target=target, other=other)))
    nodes: Any = report.as_dict()["nodes"]
    assert (nodes["all"]["rows_in"], nodes["all"]["epochs"], nodes["all"]["guarantee"]) == (50, 2, "exactly_once")
    assert (nodes["some"]["epochs"], nodes["some"]["guarantee"]) == (2, "at_least_once")
    assert (len(kafka.messages(target)), len(kafka.messages(other))) == (50, 25)


def _committed(checkpoint: Path, epoch: int) -> bool:
    return any(checkpoint.glob(f"queries/*/commits/{epoch}"))


def _until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
