"""State of an incremental query: it is read back after a restart, and an epoch that is written is not computed again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import Keeper, Rows, applied

from millstream.checkpoint.incremental import IncrementalState
from millstream.clients.storage import LocalStorage
from millstream.engine.incremental import maintenance, view
from millstream.engine.incremental.view import View
from millstream.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TOTALS = "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k) GROUP BY n"
TIES = "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t"
EPOCHS: list[Rows] = [
    [("a", 1, 1), ("b", 1, 1), ("a", 1, 1)],
    [("a", 2, 1), ("c", 1, 1)],
    [("a", 1, -1), ("b", 1, -1)],
    [("c", 5, 1), (None, 1, 1)],
]


def run(keeper: Keeper, first: int, last: int) -> list[Rows]:
    return [keeper.step(epoch, t=EPOCHS[epoch]) for epoch in range(first, last)]


def run_with_snapshots(keeper: Keeper, first: int, last: int) -> list[Rows]:
    """The same, but each snapshot ends before the next epoch."""
    found = []
    for epoch in range(first, last):
        found += run(keeper, epoch, epoch + 1)
        keeper.kept.snapshots.wait()
    return found


def test_a_restart_continues_with_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    straight = run(Keeper(spark, TOTALS, tmp_path / "straight"), 0, 4)
    before = run(Keeper(spark, TOTALS, tmp_path / "cut"), 0, 2)
    after = run(Keeper(spark, TOTALS, tmp_path / "cut", partitions=3), 2, 4)
    assert [Counter(epoch) for epoch in before + after] == [Counter(epoch) for epoch in straight]
    assert applied(before + after, key=(0,)) == Counter({(1, 1): 1, (2, 2): 1})


def test_without_the_written_state_a_restart_is_wrong(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test before."""
    straight = run(Keeper(spark, TOTALS, tmp_path / "straight"), 0, 4)
    before = run(Keeper(spark, TOTALS, tmp_path / "cut"), 0, 2)
    monkeypatch.setattr(maintenance.Maintenance, "_restored", lambda self, epoch: self.view.empty_version())
    after = run(Keeper(spark, TOTALS, tmp_path / "cut"), 2, 4)
    assert [Counter(epoch) for epoch in before + after] != [Counter(epoch) for epoch in straight]


def test_an_epoch_that_is_written_is_read_back(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties could be numbered otherwise a second time: what a sink may hold is what the next one receives and later epochs remove."""
    keeper = Keeper(spark, TIES, tmp_path)
    done = [keeper.step(0, t=EPOCHS[0]), keeper.step(1, t=EPOCHS[1], finish=False)]
    again = Keeper(spark, TIES, tmp_path)

    def refuse(*_: Any) -> None:
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr(View, "step", refuse)
        assert Counter(again.step(1, t=EPOCHS[1])) == Counter(done[1])
    rest = [again.step(epoch, t=EPOCHS[epoch]) for epoch in (2, 3)]
    expected = {("a", 1, 1), ("a", 2, 2), ("c", 1, 1), ("c", 5, 2), (None, 1, 1)}
    assert applied(done + rest, key=(0, 2)) == Counter(expected)


def test_a_snapshot_replaces_older_changes(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 1)
    before = run_with_snapshots(Keeper(spark, TOTALS, tmp_path), 0, 3)
    assert sorted(path.name for path in (tmp_path / "snapshots").glob("*.json")) == ["1.json", "2.json"]
    assert [path.name for path in (tmp_path / "log").glob("*.json")] == ["2.json"]
    after = run(Keeper(spark, TOTALS, tmp_path), 3, 4)
    assert applied(before + after, key=(0,)) == Counter({(1, 1): 1, (2, 2): 1})


def test_a_snapshot_that_was_cut_short_does_not_count(spark: SparkSession, tmp_path: Path) -> None:
    before = run(Keeper(spark, TOTALS, tmp_path), 0, 3)
    half = tmp_path / "snapshots" / "2-0badcafe"
    half.mkdir(parents=True)
    (half / "part-0.parquet").write_bytes(b"PAR1")
    after = run(Keeper(spark, TOTALS, tmp_path), 3, 4)
    assert applied(before + after, key=(0,)) == Counter({(1, 1): 1, (2, 2): 1})


def test_a_snapshot_with_a_truncated_file_is_not_used(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 1)
    before = run_with_snapshots(Keeper(spark, TOTALS, tmp_path), 0, 3)
    largest = max((tmp_path / "snapshots").glob("2-*/*.parquet"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-8])
    state = IncrementalState(LocalStorage(tmp_path))
    assert [(entry.kind, entry.epoch) for entry in state.path_to(2)] == [("snapshots", 1), ("log", 2)]
    assert [found.code for found in state.damages(2)] == ["MS052"]
    after = run(Keeper(spark, TOTALS, tmp_path), 3, 4)
    assert applied(before + after, key=(0,)) == Counter({(1, 1): 1, (2, 2): 1})


def test_missing_changes_are_damage(spark: SparkSession, tmp_path: Path) -> None:
    run(Keeper(spark, TOTALS, tmp_path), 0, 3)
    (tmp_path / "log" / "1.json").unlink()
    with pytest.raises(RunError, match=r"MS052.*log/1\.json.*missing"):
        run(Keeper(spark, TOTALS, tmp_path), 3, 4)


def test_another_query_does_not_use_the_state(spark: SparkSession, tmp_path: Path) -> None:
    run(Keeper(spark, TOTALS, tmp_path), 0, 1)
    with pytest.raises(RunError, match="MS053"):
        run(Keeper(spark, TOTALS.replace("count(*) AS n", "max(v) AS n"), tmp_path), 1, 2)


def test_an_epoch_of_another_history_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    run(Keeper(spark, TOTALS, tmp_path), 0, 2)
    path = tmp_path / "log" / "1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"digest": "another"}))
    with pytest.raises(RunError, match="MS055"):
        run(Keeper(spark, TOTALS, tmp_path), 1, 2)


def test_many_epochs_merge_and_stay_right(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(spark, TOTALS, tmp_path)
    changes = [keeper.step(epoch, t=[("a" if epoch % 2 else "b", epoch, 1)]) for epoch in range(12)]
    assert applied(changes, key=(0,)) == Counter({(6, 2): 1})
    assert all(len(fragments) <= 9 for fragments in keeper.kept.view.versions[11].values())


def test_a_large_store_is_not_merged_for_a_few_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_FRAGMENTS", 2)
    keeper, ids = Keeper(spark, "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 0", tmp_path), []
    for epoch in range(14):
        keeper.apply(keeper.step(epoch, t=[("k0", 1, 1)] if epoch else [(f"k{number}", 1, 1) for number in range(100)]))
        (fragments,) = keeper.kept.view.versions[epoch].values()
        ids.append([int(rdd.id()) for rdd in fragments])
    assert keeper.result == Counter({("k0", 14): 1} | {(f"k{number}", 1): 1 for number in range(1, 100)})
    assert len({first for first, *_ in ids[3:]}) == 1, "the 100 groups were merged again"
    assert max(map(len, ids)) <= 5
