"""Runs that follow one another, or should not: what the markers and the logbook make of them."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from tests.connectors.kafka.stage import Stage, only_large, stage

from millstream.connectors.kafka.sink import KafkaSinkRun

pytestmark = pytest.mark.spark
__all__ = ["stage"]


def test_epochs_follow_each_other_and_lanes_may_change(stage: Stage) -> None:
    report = stage.go(70)
    assert report.nodes["out"].rows_in == report.nodes["files"].rows_in == 70
    stage.go(20, "lanes: 1")
    stage.go(20, "lanes: 3")
    assert stage.once()


def test_an_epoch_that_spark_repeats_is_not_written_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = KafkaSinkRun.commit

    def broken(self: Any, staged: Any, epoch: Any) -> None:
        commit(self, staged, epoch)
        raise OSError("the driver dies between the sink's commit and Spark's")

    with monkeypatch.context() as patched:
        patched.setattr(KafkaSinkRun, "commit", broken)
        stage.code(20)
    stage.go(20)
    assert stage.once()


@pytest.mark.parametrize("large", [False, True])
def test_a_plan_that_was_put_after_its_epoch_was_done_is_ignored(stage: Stage, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """A driver that had lost the lease has put it. Without a commit of Spark's the epoch comes again."""
    if large:
        only_large(monkeypatch)
    commit = KafkaSinkRun.commit

    def broken(self: Any, staged: Any, epoch: Any) -> None:
        commit(self, staged, epoch)
        raise OSError("the driver dies between the sink's commit and Spark's")

    with monkeypatch.context() as patched:
        patched.setattr(KafkaSinkRun, "commit", broken)
        stage.code(20)
    (log,) = stage.folder.glob("checkpoint/**/done.json")
    plan = {"folder": "", "lanes": 4, "rows": 20, "digest": json.loads(log.read_text())["digest"]}
    log.with_name("0.json").write_text(json.dumps(plan))
    stage.go(20)
    assert stage.once()


def test_lanes_that_were_not_claimed_are_not_used(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default number grows while Spark's executors register."""
    only_large(monkeypatch)
    asked: list[int] = []

    def growing(self: Any, spark: Any) -> int:
        asked.append(2 if not asked else 4)
        return asked[-1]

    monkeypatch.setattr(KafkaSinkRun, "_lanes", growing)
    stage.go(40, options="compression: lz4")
    assert stage.once() and 4 in asked
    asked[:] = [4]
    stage.go(40, options="compression: lz4")
    assert stage.once()


def test_rows_that_differ_each_time_are_computed_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT uuid() AS k, n FROM m"
    stage.half_done(monkeypatch, 40, sql=sql)
    assert 0 < len(stage.rows()) < 30
    stage.go(0, sql=sql)
    assert sorted(row["n"] for row in stage.rows()) == list(range(40))


def test_a_half_done_epoch_is_finished_with_its_own_lanes(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.go(20, "lanes: 1")
    stage.half_done(monkeypatch, 30, options="lanes: 4")
    assert 20 < len(stage.rows()) < 50
    stage.go(10, "lanes: 2")
    assert stage.once()


def test_a_checkpoint_from_an_older_copy_is_refused(stage: Stage) -> None:
    stage.go(20)
    shutil.copytree(stage.folder / "checkpoint", stage.folder / "older")
    stage.go(20)
    shutil.rmtree(stage.folder / "checkpoint")
    shutil.move(stage.folder / "older", stage.folder / "checkpoint")
    shutil.rmtree(stage.folder / "out")
    shutil.rmtree(stage.folder / "checkpoint/_millstream/delivered")  # else the other sink would be missed first
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
