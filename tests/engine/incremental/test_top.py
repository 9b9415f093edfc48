"""Top-N over rows that are only added keeps no row that cannot return, and equals Spark's batch answer after every epoch."""

# ruff: noqa: E501 — the statements are read line by line

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import Keeper, Rows
from tests.warm import Done

from millstream.engine.incremental.arrivals import of_weights
from millstream.engine.incremental.assignment import Assignment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "id bigint, k string, v bigint"
RANKED = "SELECT id, k, v, {0} OVER (PARTITION BY k ORDER BY {1}) r FROM t"
KEYS, RANKS = 3, 4
EXACT = {
    "LIMIT": ("SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3", 3),
    "a projection": ("SELECT upper(k) x, v + 1 y FROM t WHERE v > 2 ORDER BY v, id LIMIT 3", 3),
    "OFFSET": ("SELECT id, v FROM t ORDER BY v, id LIMIT 3 OFFSET 2", 5),
    "a limit of a limit": ("SELECT * FROM (SELECT id, v FROM t ORDER BY v, id LIMIT 5) ORDER BY id DESC LIMIT 2", 5),
    "a join": ("SELECT a.id, b.v FROM t a JOIN t b ON a.k = b.k ORDER BY a.id DESC, b.id LIMIT 4", 4),
    "row_number": (f"SELECT * FROM ({RANKED.format('row_number()', 'v DESC, id')}) WHERE r <= 2", 2 * KEYS),
    "row_number below": (f"SELECT id, k FROM ({RANKED.format('row_number()', 'v, id')}) WHERE r < 3 AND v > 3", 2 * KEYS),
    "the second": (f"SELECT id, k FROM ({RANKED.format('row_number()', 'v, id')}) WHERE 2 = r", 2 * KEYS),
    "no partition": ("SELECT * FROM (SELECT id, row_number() OVER (ORDER BY v, id) r FROM t) WHERE r BETWEEN 2 AND 3", 3),
    "several ranks": (
        "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY v, id) r, rank() OVER (PARTITION BY k ORDER BY v, id) s FROM t) WHERE r <= 2",
        2 * KEYS,
    ),
}
TIED = {
    "rank": f"SELECT * FROM ({RANKED.format('rank()', 'v')}) WHERE r <= {RANKS}",
    "dense_rank": f"SELECT * FROM ({RANKED.format('dense_rank()', 'v')}) WHERE r <= {RANKS}",
}
WHOLE = {
    "OFFSET alone": "SELECT id, v FROM t ORDER BY v, id OFFSET 2",
    "a sum beside the rank": "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY v) r, sum(v) OVER (PARTITION BY k ORDER BY v) s"
    " FROM t) WHERE r <= 2",
    "another condition": f"SELECT * FROM ({RANKED.format('row_number()', 'v, id')}) WHERE r > 1",
}


def epochs(seed: int = 7) -> list[Rows]:
    chance = random.Random(seed)
    return [[(10 * epoch + each, "abc"[each % 3], chance.randrange(8), 1) for each in range(8)] for epoch in range(3)]


def keep(spark: SparkSession, sql: str, folder: Path) -> Keeper:
    from pyspark.sql.types import _parse_datatype_string

    feed = of_weights(_parse_datatype_string(SCHEMA), append_only=True)  # type: ignore[arg-type]  # a struct
    return Keeper(spark, sql, folder, feeds={"t": feed})


def batch(spark: SparkSession, sql: str, rows: Rows) -> Counter[tuple[Any, ...]]:
    from pyspark.sql.types import StructType
    from tests.sql.random.oracle import frame_of

    session = batch_session(spark)
    frame_of(session, [row[:-1] for row in rows], StructType.fromDDL(SCHEMA)).createOrReplaceTempView("t")
    return Counter(tuple(row) for row in session.sql(sql).collect())


@lru_cache(maxsize=1)
def batch_session(spark: SparkSession) -> SparkSession:
    from tests.sql.random.oracle import SETTINGS, new_session

    return new_session(spark, SETTINGS)


def stored(keeper: Keeper) -> int:
    return max(count for name, count in keeper.kept._kept.items() if name.endswith(".input"))


def check(spark: SparkSession, sql: str, folder: Path, most: Callable[[Rows], int]) -> None:
    keeper, seen = keep(spark, sql, folder), []
    for epoch, rows in enumerate(epochs()):
        if epoch == 2:
            again = keep(spark, sql, folder)
            again.result, keeper = keeper.result, again
        seen += rows
        keeper.apply(keeper.step(epoch, t=rows))
        assert keeper.result == batch(spark, sql, seen), f"epoch {epoch}"
        assert stored(keeper) == most(seen), f"epoch {epoch}"


@pytest.mark.parametrize("name", EXACT)
def test_only_rows_that_can_return_are_kept(name: str, spark: SparkSession, tmp_path: Path) -> None:
    sql, most = EXACT[name]
    check(spark, sql, tmp_path, lambda _: most)


@pytest.mark.parametrize("name", TIED)
def test_rows_of_one_rank_are_kept_together(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check(spark, TIED[name], tmp_path, lambda seen: len(batch(spark, TIED[name], seen)))


@pytest.mark.parametrize("name", WHOLE)
def test_everything_is_kept_where_later_rows_count(name: str, spark: SparkSession, tmp_path: Path) -> None:
    check(spark, WHOLE[name], tmp_path, len)


@pytest.mark.parametrize("name", ["OFFSET", "row_number"])
def test_without_the_proof_that_rows_stay_everything_is_kept(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the answers are the same, and the state is the whole input."""
    monkeypatch.setattr(Assignment, "_only_adds", lambda self, step: False)
    check(spark, EXACT[name][0], tmp_path, len)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t LIMIT 3",
        "SELECT id, k FROM t ORDER BY k LIMIT 3",
        f"SELECT * FROM ({RANKED.format('row_number()', '1')}) WHERE r <= 2",
    ],
)
def test_ties_stay_as_they_were_decided(sql: str, spark: SparkSession, tmp_path: Path) -> None:
    """What is removed is what was returned (`apply` requires it), also after a restart."""
    keeper, seen = keep(spark, sql, tmp_path), []
    for epoch, rows in enumerate(epochs()):
        if epoch:
            again = keep(spark, sql, tmp_path)
            again.result, keeper = keeper.result, again
        seen += rows
        before = keeper.result
        keeper.apply(keeper.step(epoch, t=rows))
        assert keeper.result.total() == batch(spark, sql, seen).total()
        if epoch and "ORDER" not in sql:
            assert keeper.result == before, "a row made room for an equal one"


def test_equal_top_rows_are_kept_once(spark: SparkSession, tmp_path: Path) -> None:
    top = f"SELECT id, k FROM ({RANKED.format('row_number()', 'v, id')}) WHERE r <= 2"
    sql = f"WITH top AS ({top}) SELECT a.id, b.id AS other FROM top a JOIN top b ON a.k = b.k"
    keeper = keep(spark, sql, tmp_path)
    assert [each.kind for each in keeper.kept.view.operators].count("top rows") == 1
    seen: Rows = []
    for epoch, rows in enumerate(epochs()[:2]):
        seen += rows
        keeper.apply(keeper.step(epoch, t=rows))
        assert keeper.result == batch(spark, sql, seen)


def test_plan_says_what_is_kept(warm: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("""
name: p
sources: {t: {type: memory, rows: [{k: a, v: 1}]}}
transforms:
  first: {type: sql, sql: "SELECT k, v FROM t ORDER BY v LIMIT 3 OFFSET 2"}
  each: {type: sql, sql: "SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) r FROM t) WHERE r = 1"}
sinks: {a: {type: print, from: first}, b: {type: print, from: each}}
""")
    text = warm("plan", "p.yaml").stdout
    assert "computes new rows and those it keeps  keeps the first 5 rows and its result\n" in text, text
    assert "by t.k  computes touched partitions  keeps the first row per partition (" in text
    assert text.count("grows without bound") == 1
