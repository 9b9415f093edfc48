"""Epochs of many rows are computed in another way, and give the same answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.incremental.keeper import Keeper, Rows

from millstream.engine.incremental import view
from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.tracing import Form

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NESTED = "SELECT n, count(*) AS c, sum(s) AS s FROM (SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k) GROUP BY n"


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every epoch after the first is a large one."""
    monkeypatch.setattr(view, "_LARGE_BYTES", -1)


def changes(epoch: int) -> Rows:
    """All keys are touched; one group goes with its last row and comes again."""
    rows: Rows = [(key, 10 * epoch + place, 1) for place, key in enumerate("abcd")]
    return rows + ([("e", 7, 1 if epoch % 2 == 0 else -1)] if epoch < 4 else [])


def answer(last: int) -> Counter[tuple[int, int, int]]:
    rows = Counter[tuple[str, int]]()
    for epoch in range(last + 1):
        for key, value, weight in changes(epoch):
            rows[key, value] += weight
    groups: dict[str, list[int]] = {}
    for (key, value), count in rows.items():
        groups.setdefault(key, []).extend([value] * count)
    by_size: dict[int, list[int]] = {}
    for values in groups.values():
        if values:
            by_size.setdefault(len(values), []).append(sum(values))
    return Counter({(size, len(sums), sum(sums)): 1 for size, sums in by_size.items()})


def test_a_store_whose_groups_all_change_is_replaced_and_stays_right_after_a_repeat_and_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    keeper = Keeper(spark, NESTED, tmp_path)
    for epoch in range(4):
        if epoch == 2:
            keeper.step(epoch, finish=False, t=changes(epoch))  # and again
        keeper.apply(keeper.step(epoch, t=changes(epoch)))
        assert keeper.result == answer(epoch)
    assert [len(fragments) for name, fragments in keeper.kept.view.versions[3].items() if name.startswith("1.")] == [1]
    again = Keeper(spark, NESTED, tmp_path)
    again.result = keeper.result
    for epoch in (4, 5):
        again.apply(again.step(epoch, t=changes(epoch)))
        assert again.result == answer(epoch)


def test_what_tasks_carry_of_a_store_stays_the_same_size(spark: SparkSession, tmp_path: Path) -> None:
    """A stored row set that remembered how it was computed would bring the work of all earlier epochs into every task."""
    keeper, sizes = Keeper(spark, NESTED, tmp_path), []
    env = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get()  # type: ignore[union-attr]  # there is a JVM
    for epoch in range(6):
        keeper.step(epoch, t=changes(epoch))
        fragments = [rdd for rdds in keeper.kept.view.versions[epoch].values() for rdd in rdds]
        sizes.append(sum(env.closureSerializer().newInstance().serialize(rdd, rdd.elementClassTag()).limit() for rdd in fragments))
    assert sizes[5] < 1.5 * sizes[2], sizes


def test_a_join_whose_other_side_is_idle_finds_a_row_that_comes_all_the_same(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.types import _parse_datatype_string

    feeds = {name: Feed(_parse_datatype_string("k string, v bigint")) for name in "tu"}  # type: ignore[arg-type]  # a struct
    text = "SELECT u.v AS g, sum(t.v) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.v"
    keeper = Keeper(spark, text, tmp_path, feeds=feeds)
    for epoch in range(4):
        rows: Rows = [("a", epoch), ("b", epoch)]
        keeper.apply(keeper.step(epoch, t=rows, u=[("a", 1)] if epoch == 0 else [("b", 2)] if epoch == 3 else []))
    assert keeper.result == Counter({(1, 0 + 1 + 2 + 3): 1, (2, 0 + 1 + 2 + 3): 1})


def test_a_store_is_compact_if_an_epoch_changes_most_of_it_and_stays_so_for_a_while() -> None:
    form = Form().after({"1.sums": 100}, {"1.sums": 90})
    assert form.compact == {"1.sums"}
    assert form.after({"1.sums": 100}, {"1.sums": 190}).compact == {"1.sums"}
    assert Form().after({"1.sums": 100}, {"1.sums": 190}).compact == frozenset()
