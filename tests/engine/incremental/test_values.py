"""Values that are easy to get wrong when rows are removed or are there several times: the result stays what a batch query returns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.incremental.keeper import Keeper

from millstream.engine.incremental import view
from millstream.engine.incremental.relations import Refused
from millstream.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_decimals_of_rows_that_are_there_several_times_keep_their_digits(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(spark, "SELECT k, sum(d) AS s FROM t GROUP BY k HAVING count(*) > 0", tmp_path, {"t": "k string, d decimal(20,9)"})
    small = Decimal("0.000000001")
    assert keeper.step(0, t=[("a", small, 3)]) == [("a", Decimal("0.000000003"), "i")]
    assert keeper.step(1, t=[("a", small, -2)]) == [("a", small, "u")]


def test_the_average_of_whole_numbers_is_exact_after_a_large_one_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(spark, "SELECT k, avg(v) AS m FROM t GROUP BY k HAVING count(*) > 0", tmp_path)
    keeper.step(0, t=[("a", 9_007_199_254_740_993, 1), ("a", 1, 1)])
    assert keeper.step(1, t=[("a", 9_007_199_254_740_993, -1)]) == [("a", 1.0, "u")]


LARGEST, SMALLEST = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("epochs", "total"),
    [
        ([[(SMALLEST, 1)], [(SMALLEST, -1), (5, 1)]], 5),
        ([[(-LARGEST, 1)], [(LARGEST, 1), (LARGEST, 1)]], LARGEST),
        ([[(-(2**62), 2)], [(-(2**62), -2), (1, 1)]], 1),
        ([[(2**32 - 1, 3), (-1, 2)], [(2**32 - 1, -1)]], 2**33 - 4),
    ],
    ids=["the smallest number is removed", "a change that is too large by itself", "a row that was there twice", "both halves"],
)
def test_sums_of_large_numbers(epochs: list[list[tuple[int, int]]], total: int, spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(spark, "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING count(*) > 0", tmp_path)
    for epoch, changes in enumerate(epochs):
        keeper.apply(keeper.step(epoch, t=[("a", value, weight) for value, weight in changes]))
    assert list(keeper.result) == [("a", total)]


def test_a_sum_that_does_not_fit_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(spark, "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING count(*) > 0", tmp_path)
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        keeper.step(0, t=[("a", LARGEST, 1), ("a", 1, 1)])


def test_a_full_join_delivers_the_unmatched_rows_of_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT a.m, b.n FROM (SELECT max(v) AS m FROM t) a FULL JOIN (SELECT count(*) AS n FROM t) b ON a.m = b.n"
    keeper = Keeper(spark, sql, tmp_path)
    assert keeper.kept.key is None
    assert sorted(keeper.step(0, t=[("a", 7, 1)]), key=str) == [(7, None, "i"), (None, 1, "i")]


def test_one_explode_after_another(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT k, y FROM t LATERAL VIEW explode(l) AS x LATERAL VIEW explode(x) AS y WHERE k IN (SELECT k FROM t)"
    keeper = Keeper(spark, sql, tmp_path, {"t": "k string, l array<array<int>>"})
    assert sorted(keeper.step(0, t=[("a", [[1, 2], [3]], 1)])) == [("a", 1, "i"), ("a", 2, "i"), ("a", 3, "i")]


def test_the_limit_of_a_subquery_holds_for_each_outer_row(spark: SparkSession, tmp_path: Path) -> None:
    """What the refusal of an expression of the outer query advises."""
    sql = """
        SELECT k, b FROM (SELECT k, upper(k) AS key FROM t) a, LATERAL (SELECT k AS b, v FROM t u WHERE u.k = a.key ORDER BY b, v LIMIT 1)
    """
    keeper = Keeper(spark, sql, tmp_path)
    rows = [("a", 1, 1), ("b", 1, 1), ("A", 1, 1), ("B", 1, 1), ("B", 2, 1)]
    assert sorted(keeper.step(0, t=rows)) == [("A", "A", "i"), *[("B", "B", "i")] * 2, ("a", "A", "i"), ("b", "B", "i")]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT m, count(*) AS n FROM t GROUP BY m HAVING count(*) > 1", "a map in"),
        ("SELECT k, now() AS at FROM (SELECT DISTINCT k FROM t)", "changes with the clock"),
        ("SELECT k, uuid() AS u FROM (SELECT DISTINCT k FROM t)", "another value each time"),
        ("SELECT k, NULL AS n FROM t WHERE k IN (SELECT k FROM t)", "the type `void`"),
        ("SELECT DISTINCT k COLLATE UTF8_LCASE AS c FROM t", "cannot be kept as state"),
        ("SELECT parse_json(k) AS v FROM t WHERE k IN (SELECT k FROM t)", "`v` has the type `variant`"),
        ("SELECT DISTINCT struct(t.k, u.k) AS p FROM t JOIN t u ON t.k = u.k", "`p` has two fields called `k`"),
        ("SELECT DISTINCT k, array(struct()) AS p FROM t", "`p` has no fields"),
        ("SELECT k, b FROM t, LATERAL (SELECT k AS b FROM t u WHERE u.k = upper(t.k) ORDER BY b LIMIT 1)", "Spark would lose the LIMIT"),
        ("SELECT (SELECT max(k) FROM (SELECT k FROM t u WHERE u.k = upper(t.k) ORDER BY k LIMIT 1)) AS m FROM t", "lose the LIMIT"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_the_reason(sql: str, reason: str, spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=reason):
        Keeper(spark, sql, tmp_path, {"t": "k string, m map<string, int>"})


@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("struct<variant_id:bigint,interval_ms:decimal(10,2)>", False),
        ("array<struct<geometry_type:string>>", False),
        ("struct<a:variant>", True),
        ("interval day to second", True),
        ("string collate UTF8_LCASE", True),
    ],
)
def test_types_that_cannot_be_kept_are_told_from_names(kind: str, refused: bool) -> None:
    from millstream.engine.incremental.relations import is_unstorable

    assert is_unstorable(kind) is refused


def test_nulls_in_maps_stay_nulls_where_spark_generates_code(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's own code for grouping by a map makes 0 of them."""
    monkeypatch.setattr(view, "_LARGE_BYTES", -1)
    tables = {"t": "k int, m map<string,bigint>, a array<struct<n: map<int,double>>>", "u": "k int"}
    keeper = Keeper(spark, "SELECT t.k, m, a FROM t LEFT JOIN u ON t.k = u.k", tmp_path, tables)
    row = (1, {"x": None, "y": 2}, [({1: None, 2: 0.5},), None])
    for epoch in range(3):
        changes = keeper.step(epoch, t=[(*row, 1)] if epoch < 2 else [(*row, -1)], u=[(2, 1)])
        assert [(each[1], each[2][0][0], each[3]) for each in changes] == [(row[1], row[2][0][0], "d" if epoch == 2 else "i")]


def test_a_query_with_binary_values_continues(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT k, b FROM t JOIN VALUES (1, X'61'), (2, X'00') AS f(k2, b) ON t.k = f.k2"
    Keeper(spark, sql, tmp_path, {"t": "k int"}).step(0, t=[(1, 1)])
    assert Keeper(spark, sql, tmp_path, {"t": "k int"}).step(1, t=[(2, 1)]) == [(2, bytearray(b"\0"), "i")]
    other = sql.replace("61", "62")
    with pytest.raises(RunError, match="MS053"):
        Keeper(spark, other, tmp_path, {"t": "k int"}).step(2)
