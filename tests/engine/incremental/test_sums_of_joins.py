"""Aggregates over joins: of the side whose values are added up, only sums are kept."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.incremental.keeper import Keeper, Rows

from millstream.engine.incremental import view
from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.operators.summed_joins import SummedJoin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TABLES = {"t": "k int, v bigint, d decimal(10,2), g string", "u": "k int, w int"}
QUERIES = {
    "sums of one side": "SELECT u.w, count(*) AS n, sum(t.v) AS s, avg(t.k) AS a FROM t JOIN u ON t.k = u.k GROUP BY u.w",
    "groups of both sides": "SELECT t.g, u.w, sum(t.d) AS s, count(t.d) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.g, u.w",
    "expressions of the right side": "SELECT u.w + 1 AS w, sum(t.d * 2 + 1) AS s FROM u JOIN t ON t.k = u.k GROUP BY u.w + 1",
    "one group and a filter": "SELECT count(*) AS n, sum(t.v) FILTER (WHERE t.v > 2) AS s FROM t JOIN u ON t.k = u.k AND t.g < 'c'",
}


def changes(dice: random.Random, present: dict[str, Rows]) -> dict[str, Rows]:
    """Rows that come, often several times, and rows that go."""
    found: dict[str, Rows] = {}
    for name, rows in present.items():
        gone = dice.sample(rows, len(rows) // 3)
        for row in gone:
            rows.remove(row)
        new = [_row(dice, name) for _ in range(12)]
        rows.extend(new)
        found[name] = [(*row, 1) for row in new] + [(*row, -1) for row in gone]
    return found


def _row(dice: random.Random, name: str) -> tuple[object, ...]:
    from decimal import Decimal

    key = dice.choice([None, 1, 2, 3])
    if name == "u":
        return key, dice.choice([None, 10, 20])
    return key, dice.choice([None, 1, 2, 1 << 52]), dice.choice([None, Decimal("1.50"), Decimal("99999999.99")]), dice.choice("abc")


@pytest.mark.parametrize("query", QUERIES)
def test_rows_that_come_and_go_give_the_batch_answer(
    spark: SparkSession, tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "_FRAGMENTS", 2)
    dice, present = random.Random(query), {name: Rows() for name in TABLES}
    keeper = Keeper(spark, QUERIES[query], tmp_path, TABLES)
    assert any(isinstance(each, SummedJoin) for each in keeper.kept.view.operators)
    for epoch in range(5):
        if epoch == 3:
            again = Keeper(spark, QUERIES[query], tmp_path, TABLES)
            again.result, keeper = keeper.result, again
        if epoch % 2:
            monkeypatch.setattr(view, "_LARGE_BYTES", -1 if epoch == 1 else 1 << 40)
        keeper.apply(keeper.step(epoch, **changes(dice, present)))
        assert keeper.result == _batch(spark, QUERIES[query], present)


def _batch(spark: SparkSession, text: str, tables: dict[str, Rows]) -> Counter[tuple[object, ...]]:
    for name, rows in tables.items():
        spark.createDataFrame(rows, TABLES[name]).createOrReplaceTempView(name)
    return Counter(tuple(row) for row in spark.sql(text).collect())


def test_what_is_kept_grows_with_keys_and_not_with_rows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_FRAGMENTS", 2)
    keeper = Keeper(spark, QUERIES["sums of one side"], tmp_path, TABLES)
    for epoch in range(8):
        rows: Rows = [(key, epoch, None, "a", 1) for key in (1, 2) for _ in range(50)]
        keeper.step(epoch, t=rows, u=[(1, 10, 1)] if epoch == 0 else [])
    stored = {each.kind: each.rows for each in keeper.kept.facts(7).operators}
    assert stored["inner join of sums"] <= 2 * (2 + 2) + 1
    keeper.apply(keeper.step(8, u=[(2, 20, 1)]))
    assert (20, 400, 50 * sum(range(8)), 2.0) in keeper.result
    again = Keeper(spark, QUERIES["sums of one side"], tmp_path, TABLES)
    again.step(9)
    assert {each.kind: each.rows for each in again.kept.facts(9).operators}["inner join of sums"] == 2 + 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT u.w, sum(t.v * u.k) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.w",
        "SELECT u.w, max(t.v) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.w",
        "SELECT u.w, sum(cast(t.g AS int)) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.w",
        "WITH j AS (SELECT w, v FROM t JOIN u ON t.k = u.k) SELECT w, sum(v) AS s FROM j GROUP BY w UNION ALL SELECT w, v FROM j",
        "SELECT u.w, sum(t.v) AS s FROM t LEFT JOIN u ON t.k = u.k GROUP BY u.w",
        "SELECT u.w, sum(cast(t.d AS decimal(28,10))) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.w",
    ],
)
def test_joins_of_which_sums_are_not_enough(spark: SparkSession, tmp_path: Path, text: str) -> None:
    assert not any(isinstance(each, SummedJoin) for each in Keeper(spark, text, tmp_path, TABLES).kept.view.operators)


def test_rows_that_are_only_nearly_equal_are_not_added_up(spark: SparkSession, tmp_path: Path) -> None:
    """0.0 and -0.0 are equal, and their texts are not: the other side is added up."""
    text = "SELECT string(f) AS f, count(*) AS n FROM (SELECT k, double(v) AS f FROM t) t JOIN u ON t.k = u.k GROUP BY string(f), w"
    (join,) = [each for each in Keeper(spark, text, tmp_path, TABLES).kept.view.operators if isinstance(each, SummedJoin)]
    assert [column.name for column in join.grouped] == ["k", "w"]


def test_rows_that_are_only_added_have_minima_and_conditions_between_the_sides_in_any_number_of_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql.types import _parse_datatype_string

    feeds = {name: Feed(_parse_datatype_string(ddl)) for name, ddl in TABLES.items()}  # type: ignore[arg-type]  # a struct
    text = "SELECT u.w, min(t.v) AS a, max(t.v) AS b, count(*) AS n FROM t JOIN u ON t.k = u.k AND t.v < u.w GROUP BY u.w"
    dice, present, result = random.Random(1), {name: Rows() for name in TABLES}, Counter[tuple[object, ...]]()
    for epoch in range(3):
        keeper = Keeper(spark, text, tmp_path, partitions=2 + epoch, feeds=feeds)
        assert any(isinstance(each, SummedJoin) for each in keeper.kept.view.operators)
        new = {name: [_row(dice, name) for _ in range(10)] for name in TABLES}
        for name, rows in new.items():
            present[name].extend(rows)
        keeper.result = result
        keeper.apply(keeper.step(epoch, **new))
        result = keeper.result
        assert result == _batch(spark, text, present)


def test_a_row_without_a_partner_is_no_error(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT u.w, sum(cast(t.g AS int)) AS s FROM t JOIN u ON t.k = u.k GROUP BY u.w"
    keeper = Keeper(spark, text, tmp_path, TABLES)
    assert keeper.step(0, t=[(1, 0, None, "7", 1), (2, 0, None, "x", 1)], u=[(1, 10, 1)]) == [(10, 7, "i")]


def test_a_filter_protects_the_argument(spark: SparkSession, tmp_path: Path) -> None:
    text = "SELECT k, sum(cast(g AS int)) FILTER (WHERE g <> 'x') AS s FROM t GROUP BY k"
    assert Keeper(spark, text, tmp_path, TABLES).step(0, t=[(1, 0, None, "7", 1), (1, 0, None, "x", 1)]) == [(1, 7, "i")]
