"""The key of an incremental result: it follows from the query, or it is declared and checked; sinks apply changes by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engine.incremental.keeper import Keeper

from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
WINDOW = "window(timestamp_seconds(v), '{} hours')"
SOURCES = "sources: {t: {type: memory, rows: [{k: a, v: 1}, {k: b, v: 2}, {k: a, v: 3}], rows_per_epoch: 2}}"


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > 1", ("k",)),
        ("SELECT n, k AS name FROM (SELECT k, count(*) AS n FROM t GROUP BY k)", ("name",)),
        ("SELECT upper(k) AS k, count(*) AS n FROM t GROUP BY k", None),
        ("SELECT k, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t) WHERE r = 1", ("k",)),
        ("SELECT DISTINCT k, v % 2 AS odd FROM t", ("k", "odd")),
        (
            "SELECT k, n, m FROM (SELECT k, count(*) AS n FROM t GROUP BY k) JOIN (SELECT k, max(v) AS m FROM t GROUP BY k) USING (k)",
            ("k",),
        ),
        ("SELECT max(v) AS m, count(DISTINCT k) AS n FROM t", ()),
        (f"SELECT w.start AS at, count(*) AS n FROM (SELECT {WINDOW.format(1)} AS w FROM t) GROUP BY w", ("at",)),
        (
            f"SELECT w.start s, count(*) n FROM (SELECT {WINDOW.format(1)} w FROM t UNION ALL SELECT {WINDOW.format(2)} FROM t) GROUP BY w",
            None,
        ),
        ("SELECT a.k, b.v FROM t a JOIN t b ON a.k = b.k", None),
    ],
)
def test_it_follows_from_the_query(sql: str, key: tuple[str, ...] | None, spark: SparkSession, tmp_path: Path) -> None:
    assert Keeper(spark, sql, tmp_path).kept.key == key


def test_a_declared_key_that_two_rows_share_fails_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    keeper = Keeper(spark, "SELECT k, v + 0 AS v FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.k = t.k)", tmp_path, key=("k",))
    assert sorted(keeper.step(0, t=[("a", 1, 1), ("b", 2, 1)])) == [("a", 1, "i"), ("b", 2, "i")]
    assert keeper.step(1, t=[("a", 1, -1), ("a", 7, 1)]) == [("a", 7, "u")]
    with pytest.raises(Exception, match=r"MS176.*two rows of the result have the key"):
        keeper.step(2, t=[("b", 3, 1)])
    assert not list(tmp_path.glob("log/2*"))


def test_a_sink_with_another_key_is_refused(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline(f"""
        {SOURCES}
        transforms: {{q: {{type: sql, sql: "SELECT k, max(v) AS m FROM t GROUP BY k HAVING count(*) > 0"}}}}
        sinks: {{out: {{type: memory, from: q, primary_key: m}}}}
    """)
    with pytest.raises(RunError, match=r"MS178.*key `m`.*key `k`"):
        run(topology)


def test_a_changelog_without_a_key_is_refused(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    """Only Spark follows keys through SQL; `check` knows of other nodes (`tests/plan/test_changelogs_have_keys.py`)."""
    topology = pipeline("""
        sources: {t: {type: memory, rows: [{k: a, v: 1, _op: i}]}}
        transforms:
          all: {type: sql, sql: "SELECT * FROM t"}
          q: {type: sql, sql: "SELECT k, max(v) AS m FROM all GROUP BY k"}
        sinks: {out: {type: memory, from: q}}
    """)
    with pytest.raises(RunError, match=r"MS177.*`all` is a changelog without a primary key"):
        run(topology)
