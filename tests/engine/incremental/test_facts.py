"""Each operator's rows, bytes and changes are counted while the changes are written, and known again after a restart."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.engine.incremental.keeper import Keeper

from millstream.engine.incremental import log, maintenance, view
from millstream.engine.incremental.growth import growth_of
from millstream.engine.run.progress import _record_parts
from millstream.observe.facts import OperatorFacts, StateFacts
from millstream.observe.recorder import Recorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.plan.cutting import QueryPlan

pytestmark = pytest.mark.spark
TOP = "SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s DESC LIMIT 1"


def counts(keeper: Keeper, epoch: int) -> list[tuple[str, str, int, int]]:
    return [(each.kind, each.key, each.rows, each.changed) for each in keeper.kept.facts(epoch).operators]


@pytest.mark.parametrize("workers_write", [False, True])
def test_rows_are_counted_whoever_writes_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers_write: bool
) -> None:
    if workers_write:
        monkeypatch.setattr(log, "_SMALL_BYTES", -1)
    keeper = Keeper(spark, TOP, tmp_path)
    keeper.step(0, t=[("a", 1, 1), ("b", 2, 1), ("a", 1, 1)])
    # the input of LIMIT has both groups, and its result one row
    assert counts(keeper, 0) == [("sums", "k", 2, 2), ("by key", "all rows", 3, 3)]
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 1)
    keeper.step(1, t=[("b", 2, -1), ("c", 9, 1)])
    assert counts(keeper, 1) == [("sums", "k", 2, 2), ("by key", "all rows", 3, 4)]
    total = keeper.kept.facts(1)
    assert total.rows == 5 and total.memory_bytes == sum(each.bytes for each in total.operators) and (total.disk_bytes or 0) > 0
    assert all(each.bytes > 0 for each in total.operators)
    again = Keeper(spark, TOP, tmp_path)
    again.step(2, t=[("d", 1, 1)])
    assert counts(again, 2) == [("sums", "k", 3, 1), ("by key", "all rows", 4, 1)]


def test_the_estimate_of_plan_is_near_what_is_held_of_merged_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_FRAGMENTS", 0)
    keeper = Keeper(spark, "SELECT k, max(v) AS m FROM t GROUP BY k", tmp_path)
    keeper.step(0, t=[(f"a text of twenty{number:04}", number, 1) for number in range(4000)])
    keeper.step(1)
    estimate = growth_of(keeper.kept.view.compilation)[-1]
    (held,) = keeper.kept.facts(1).operators
    assert (estimate.operator.kind, estimate.cost, estimate.bounded_by) == ("by key", "touched groups", "")
    expected = held.rows // 2 * sum(estimate.row_bytes)
    assert 0.8 < held.bytes / expected < 1.25, (held, estimate.row_bytes)


def test_the_state_of_native_parts_is_counted_beside_that_of_operators() -> None:
    recorder, plan = Recorder("p"), SimpleNamespace(root=SimpleNamespace(name="q"), above=(), maintained=())
    recorder.set("q", "transform", state=StateFacts(5, 100, 7, (OperatorFacts("sums", "k", 5, 100, 1),)))
    rows = {"numRowsTotal": 3, "memoryUsedBytes": 50, "numRowsUpdated": 2, "numRowsRemoved": 4}
    native = [{"operatorName": "symmetricHashJoin", **rows}, {"operatorName": "stateStoreSave", **rows}]
    for _ in range(2):  # the progress of two epochs may be read at once
        _record_parts(native, cast("QueryPlan", plan), recorder)
    state = recorder.snapshot().nodes["q"].state
    assert state is not None and (state.rows, state.memory_bytes, state.disk_bytes) == (11, 200, 7)
    assert [(each.kind, each.rows, each.changed) for each in state.operators] == [
        ("native join", 3, 6),
        ("native windows", 3, 6),
        ("sums", 5, 1),
    ]
