"""Snapshots are written beside the epochs: none waits for one, none is lost when one fails."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import Keeper

from millstream.checkpoint.incremental import IncrementalState
from millstream.clients.storage import LocalStorage
from millstream.engine.incremental import maintenance, view
from millstream.engine.incremental.log import StateLog
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SQL = "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 0"
LAST = 3


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Snapshots are due after every epoch, and begin to write when the event is set; stores are merged in every epoch."""
    event, write = threading.Event(), StateLog.write_snapshot

    def wait(self: StateLog, *arguments: Any) -> None:
        assert event.wait(60)
        write(self, *arguments)

    monkeypatch.setattr(StateLog, "write_snapshot", wait)
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 1)
    monkeypatch.setattr(view, "_FRAGMENTS", 1)
    return event


def run_epochs(keeper: Keeper, held: threading.Event) -> None:
    """Four epochs, while the snapshot of the first one waits."""
    for epoch in range(LAST + 1):
        keeper.apply(keeper.step(epoch, t=[("ab"[epoch % 2], epoch, 1)]))
    held.set()
    keeper.kept.snapshots.wait()


def snapshots(folder: Path) -> list[int]:
    return IncrementalState(LocalStorage(folder)).epochs("snapshots")


def test_epochs_go_on_while_a_snapshot_is_written(spark: SparkSession, tmp_path: Path, held: threading.Event) -> None:
    keeper = Keeper(spark, SQL, tmp_path)
    run_epochs(keeper, held)
    assert snapshots(tmp_path) == [0] and keeper.result == Counter({("a", 2): 1, ("b", 4): 1})
    again = Keeper(spark, SQL, tmp_path)
    again.result = keeper.result
    again.apply(again.step(LAST + 1, t=[("a", 5, 1)]))
    assert again.result == Counter({("a", 7): 1, ("b", 4): 1})
    again.kept.close()
    assert snapshots(tmp_path) == [0, LAST + 1]  # closing has waited


def test_a_version_that_is_not_pinned_is_lost(
    spark: SparkSession, tmp_path: Path, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test before. The failure is a warning, the epochs are right, and later snapshots are written."""
    monkeypatch.setattr(view.View, "pin", lambda self, epoch, watermark_us: self.state(epoch, watermark_us))
    monkeypatch.setattr(maintenance, "_RETRY_EPOCHS", 1)
    keeper = Keeper(spark, SQL, tmp_path)
    run_epochs(keeper, held)
    assert snapshots(tmp_path) == [] and keeper.result == Counter({("a", 2): 1, ("b", 4): 1})
    keeper.step(LAST + 1, t=[("a", 5, 1)], finish=False)
    warning = keeper.kept.finish(LAST + 1, f"digest {LAST + 1}")
    assert "no snapshot of its state was written" in warning and "tried again" in warning
    keeper.step(LAST + 2, t=[("a", 5, 1)])
    keeper.kept.close()
    assert snapshots(tmp_path) == [LAST + 2]


def test_a_run_that_lost_its_lease_deletes_nothing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 1)
    keeper = Keeper(spark, SQL, tmp_path)
    keeper.step(0, t=[("a", 1, 1)], finish=False)

    def lost() -> None:
        raise RuntimeError("the lease is lost")

    monkeypatch.setattr(keeper.kept.log, "_require_lease", lost)
    keeper.kept.finish(0, "digest 0")
    keeper.kept.close()
    assert snapshots(tmp_path) == [] and IncrementalState(LocalStorage(tmp_path)).epochs("log") == [0]


def test_a_failure_while_a_run_ends_is_a_warning(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: StateLog, *arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(StateLog, "write_snapshot", fail)
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 1)
    report = run(
        pipeline(f"""
            sources: {{t: {{type: memory, rows: [{{k: a, v: 1}}]}}}}
            transforms: {{q: {{type: sql, sql: "{SQL}"}}}}
            sinks: {{out: {{type: blackhole, from: q}}}}
        """)
    )
    assert any("no snapshot of its state was written at the end" in each and "disk full" in each for each in report.notes)
