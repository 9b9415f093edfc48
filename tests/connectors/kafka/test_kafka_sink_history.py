"""Runs that follow one another, or should not: what the markers and the logbook make of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.kafka import Cluster

from millstream.connectors.kafka import lanes
from millstream.connectors.kafka.sink import KafkaSink
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    connections: {{kafka: {{bootstrap_servers: "{address}"}}}}
    sources:
      m: {{type: kafka, topic: {source}, format: json, schema: {{k: string, n: int64}}, max_rows_per_epoch: 30}}
    transforms:
      rows: {{type: sql, sql: "{sql}"}}
    sinks:
      out: {{type: kafka, from: rows, topic: {target}, key: k, {options}}}
      files: {{type: file, from: rows, path: out, format: json}}
    settings: {{checkpoint: checkpoint, trigger: {{type: available_now}}}}
"""


class Stage:
    """One pipeline, run as often as a test likes."""

    def __init__(self, kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], folder: Path) -> None:
        self.kafka, self._pipeline, self._run, self.folder = kafka, pipeline, run, folder
        self.source, self.target, self.count = kafka.topic(), kafka.topic(4), 0

    def go(self, rows: int, options: str = "lanes: 4", sql: str = "SELECT * FROM m") -> Report:
        """Send more rows, and run."""
        self.kafka.send(self.source, [{"k": f"k{n % 5}", "n": n} for n in range(self.count, self.count + rows)])
        self.count += rows
        values = {"source": self.source, "target": self.target, "options": options, "sql": sql}
        return self._run(self._pipeline(TEXT.format(address=self.kafka.address, **values)))

    def code(self, rows: int, **options: Any) -> str:
        with pytest.raises(MillstreamError) as caught:
            self.go(rows, **options)
        return caught.value.diagnostics[0].code

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in self.kafka.messages(self.target)]

    def once(self) -> bool:
        """Whether all rows are there, once, each key in order."""
        numbers = {k: [row["n"] for row in self.rows() if row["k"] == k] for k in {row["k"] for row in self.rows()}}
        ordered = all(found == sorted(found) for found in numbers.values())
        return ordered and sorted(row["n"] for row in self.rows()) == list(range(self.count))

    def group(self) -> str:
        """The group that holds the markers."""
        names = [each.group_id for each in self.kafka.admin.list_consumer_groups().result(20).valid if ".out." in each.group_id]
        (name,) = [name for name in names if any(topic == self.target for topic, _ in self.kafka.group(name))]
        return str(name)


@pytest.fixture
def stage(kafka: Cluster, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> Stage:
    return Stage(kafka, pipeline, run, tmp_path)


def test_epochs_follow_each_other_and_lanes_may_change(stage: Stage) -> None:
    report = stage.go(70)
    assert report.nodes["out"].rows_in == report.nodes["files"].rows_in == 70
    stage.go(20, "lanes: 1")
    stage.go(20, "lanes: 3")
    assert stage.once()


def test_an_epoch_that_spark_repeats_is_not_written_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = KafkaSink.commit

    def broken(self: Any, staged: Any, epoch: Any) -> None:
        commit(self, staged, epoch)
        raise OSError("the driver dies between the sink's commit and Spark's")

    with monkeypatch.context() as patched:
        patched.setattr(KafkaSink, "commit", broken)
        stage.code(20)
    stage.go(20)
    assert stage.once()


def test_rows_that_differ_each_time_are_computed_once(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch()

    def passing(point: str, lane: int) -> None:
        if point == "committed":
            token.unlink()  # the first one only: the next one fails

    with monkeypatch.context() as patched:
        patched.setattr(lanes, "passing", passing)
        stage.code(40, sql="SELECT uuid() AS k, n FROM m")
    assert 0 < len(stage.rows()) < 30
    stage.go(0, sql="SELECT uuid() AS k, n FROM m")
    assert sorted(row["n"] for row in stage.rows()) == list(range(40))


def test_a_checkpoint_from_an_older_copy_is_refused(stage: Stage) -> None:
    stage.go(20)
    shutil.copytree(stage.folder / "checkpoint", stage.folder / "older")
    stage.go(20)
    shutil.rmtree(stage.folder / "checkpoint")
    shutil.move(stage.folder / "older", stage.folder / "checkpoint")
    shutil.rmtree(stage.folder / "out")
    assert stage.code(5) == "MS055"
    assert len(stage.rows()) == 40


def test_markers_that_somebody_removed_are_missed(stage: Stage) -> None:
    stage.go(20)
    for future in stage.kafka.admin.delete_consumer_groups([stage.group()]).values():
        future.result(20)
    assert stage.code(20) == "MS096"
    assert len(stage.rows()) == 20


def test_a_topic_that_was_made_again_is_refused(stage: Stage) -> None:
    stage.go(5)
    stage.kafka.delete(stage.target)
    assert stage.code(5) == "MS091"
    stage.kafka.topic(4, name=stage.target)
    assert stage.code(0) == "MS094"


def test_a_message_too_large_can_be_dropped_afterwards(stage: Stage) -> None:
    sql = "SELECT k, n, repeat('x', if(n = 3, 2000000, 1)) AS t FROM m"
    assert stage.code(10, sql=sql) == "MS097"
    assert stage.rows() == []
    report = stage.go(0, "lanes: 4, on_error: drop", sql)
    assert sorted(row["n"] for row in stage.rows()) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert (report.nodes["out"].rows_in, report.nodes["out"].rejected) == (9, 1)
