"""SQL that Spark cannot run as a stream by itself is kept up to date: after every epoch it equals Spark's batch answer over the rows so far.

Each of these statements was once refused, or gave an answer that depended on where epochs were cut.
"""
# ruff: noqa: E501 — the statements are read line by line

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.engine.incremental.keeper import Keeper
from tests.stateful.conftest import at

from millstream.connectors.memory.sink import MemorySink
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEMA = "id bigint, k string, v bigint, d double, at timestamp"
ROWS = [
    (1, "a", 1, 0.0, at(1)),
    (2, "b", 9, -0.0, at(4)),
    (3, "a", 7, 1.5, at(12)),
    (4, "A", 2, 1.5, at(25)),
    (5, None, 3, -0.0, at(33)),
    (6, "b", 5, 0.0, at(47)),
    (7, "b", 4, float("nan"), at(61)),
]
EPOCHS = [
    [(*row, 1) for row in ROWS[:3]],
    [(*row, 1) for row in ROWS[3:]],
    [(*ROWS[0], -1), (*ROWS[5], -1), (*ROWS[1], 1)],
]
"""Rows are added, then some are removed and one is there twice."""
TENS = "SELECT window(at, '10 seconds') w, count(*) n, sum(v) s FROM t GROUP BY 1"
THIRTIES = "SELECT window(at, '30 seconds') w, count(*) n FROM t GROUP BY 1"
KEYED = "SELECT window(at, '10 seconds') w, k, count(*) n, sum(v) s FROM t GROUP BY 1, 2"
KEPT = {
    "UNION ALL with rows": "SELECT id FROM t UNION ALL SELECT 100 AS id",
    "a subquery of such rows": "SELECT id, (SELECT max(a) FROM VALUES (1), (2) AS x(a)) m FROM t",
    "an aggregate of one row": "SELECT id, m FROM t, LATERAL (SELECT max(x) m FROM (SELECT explode(array(v, id)) x))",
    "a subquery and IN with rows": "SELECT id, (SELECT max(id) FROM t) m FROM t WHERE id IN (SELECT 1 UNION ALL SELECT 2) AND v > 1",
    "SORT BY": "SELECT id, v FROM t WHERE v > 1 DISTRIBUTE BY id SORT BY v",
    "two CTEs hide an aggregate": "WITH a AS (SELECT k, count(*) n FROM t GROUP BY k), b AS (SELECT * FROM a WHERE n < 2) SELECT k, n FROM b",
    "two CTEs and UNION ALL": "WITH a AS (SELECT k, count(*) n FROM t GROUP BY k), b AS (SELECT * FROM a) SELECT k, n FROM b UNION ALL SELECT k, v FROM t",
    "an alias hides the key": "SELECT upper(k) AS k, count(*) n FROM t GROUP BY k",
    "an alias of another column hides the key": "SELECT id AS k, n FROM (SELECT max(id) AS id, count(*) n FROM t GROUP BY k)",
    "no key": "SELECT count(*) n FROM t GROUP BY k",
    "IN": "SELECT id FROM t WHERE k IN (SELECT k FROM t WHERE v > 5)",
    "NOT IN": "SELECT id FROM t WHERE k NOT IN (SELECT k FROM t WHERE v > 5)",
    "EXISTS": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t b WHERE b.k = t.k AND b.v > 5)",
    "a scalar subquery": "SELECT id FROM t WHERE v > (SELECT mean(v) FROM t)",
    "LATERAL": "SELECT id, m FROM t, LATERAL (SELECT max(v) m FROM t b WHERE b.k = t.k)",
    "a subquery in SELECT": "SELECT id, (SELECT max(v) FROM t) m FROM t",
    "a join": "SELECT a.id FROM t a JOIN t b ON a.k = b.k AND a.id < b.id",
    "DISTINCT": "SELECT DISTINCT k FROM t",
    "LIMIT": "SELECT id FROM t LIMIT 3",
    "OFFSET": "SELECT id FROM t OFFSET 3",
    "ORDER BY": "SELECT id FROM t ORDER BY v",
    "PIVOT": "SELECT * FROM (SELECT k, v FROM t) PIVOT (sum(v) FOR k IN ('a', 'b'))",
    "INTERSECT": "SELECT k FROM t WHERE v > 5 INTERSECT SELECT k FROM t",
    "row_number": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY v) r FROM t",
    "a named window": "SELECT id, row_number() OVER o r FROM t WINDOW o AS (PARTITION BY k ORDER BY v)",
    "mean above row_number": f"SELECT mean(n) m FROM (SELECT *, row_number() OVER (PARTITION BY w ORDER BY n) r FROM ({KEYED})) WHERE r = 1",
    "an end and a start": f"SELECT x.s, y.n FROM ({TENS}) x JOIN ({TENS}) y ON x.w.end = y.w.start",
    "windows of two sizes by their start": f"SELECT x.s, y.n FROM ({TENS}) x JOIN ({THIRTIES}) y ON x.w.start = y.w.start",
    "windows of two sizes as wholes": f"SELECT x.s, y.n FROM ({TENS}) x JOIN ({THIRTIES}) y ON x.w = y.w",
    "rank and IN": f"SELECT k, n FROM (SELECT *, rank() OVER (PARTITION BY w ORDER BY s) r FROM ({KEYED})) WHERE r IN (SELECT n FROM ({TENS}))",
    "a column called like the window": f"SELECT x.n, y.w FROM ({TENS}) x JOIN (SELECT window(at, '10 seconds') z, max(id) w FROM t GROUP BY 1) y ON x.n = y.w",
    "the other side of an outer join": f"SELECT w2, count(*) c FROM (SELECT x.k, y.w w2 FROM ({KEYED}) x LEFT JOIN (SELECT * FROM ({TENS}) WHERE n > 1) y "
    "ON x.w = y.w) GROUP BY w2",
    "a full join and an aggregate": f"SELECT w, count(*) c FROM (SELECT coalesce(x.w, y.w) w FROM ({KEYED}) x FULL JOIN ({TENS}) y ON x.w = y.w) GROUP BY w",
    "row_number below a window": "SELECT window(at, '10 seconds') w, sum(r) n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v) r FROM t) GROUP BY 1",
    "running ROLLUP": "SELECT k, count(*) n FROM t GROUP BY ROLLUP(k)",
    "running GROUPING SETS": "SELECT k, v, count(*) n FROM t GROUP BY GROUPING SETS ((k), (v))",
    "a key without a name": "SELECT v % 2, count(*) n FROM t GROUP BY 1",
    "rows of the query itself that are kept": "SELECT x.a, t.id FROM VALUES ('a'), ('z') AS x(a) LEFT JOIN t ON t.k = x.a",
}
ORDERED = {"LIMIT": "SELECT id FROM t ORDER BY v, id LIMIT 3", "OFFSET": "SELECT id FROM t ORDER BY id OFFSET 3"}
"""Where the batch answer is one of several."""


def batch(spark: SparkSession, sql: str, rows: Counter[tuple[Any, ...]]) -> Counter[str]:
    table = spark.createDataFrame([row for row, count in rows.items() for _ in range(count)], SCHEMA)
    table.createOrReplaceTempView("t")
    try:
        return Counter(map(normal, spark.sql(sql).collect()))
    finally:
        spark.catalog.dropTempView("t")


def normal(row: Any) -> str:
    return json.dumps([0.0 if value == 0 and isinstance(value, float) else value for value in row], default=str)


@pytest.mark.parametrize("name", KEPT)
def test_it_equals_the_batch_answer_after_every_epoch(name: str, spark: SparkSession, tmp_path: Path) -> None:
    sql = ORDERED.get(name, KEPT[name])
    keeper = Keeper(spark, sql, tmp_path, {"t": SCHEMA})
    rows: Counter[tuple[Any, ...]] = Counter()
    result: dict[str, str] | Counter[str] = Counter()
    for epoch, changes in enumerate(EPOCHS):
        for *row, weight in changes:
            rows[tuple(row)] += weight
        keeper.apply(keeper.step(epoch, t=changes))
        result = Counter(map(normal, keeper.result.elements()))
        assert result == batch(spark, sql, rows), f"epoch {epoch}"


@pytest.mark.parametrize("name", ["two CTEs hide an aggregate", "NOT IN", "windows of two sizes by their start"])
def test_a_pipeline_delivers_it(name: str, pipeline: Callable[..., Topology], run: Callable[..., Report], spark: SparkSession) -> None:
    names = ["id", "k", "v", "d", "at"]
    rows = [dict(zip(names, row, strict=True)) for row in ROWS[:-1]]
    source = {"type": "memory", "rows": rows, "rows_per_epoch": 2}
    sinks = {"out": {"type": "memory", "from": "q"}, "other": {"type": "blackhole", "from": "t"}}
    document = {"name": "p", "sources": {"t": source}, "transforms": {"q": {"type": "sql", "sql": KEPT[name]}}, "sinks": sinks}
    topology = pipeline(yaml.safe_dump(document))
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    key = {"two CTEs hide an aggregate": "k"}.get(name, "")
    found: Counter[str] = Counter()
    by_key: dict[Any, str] = {}
    for row in sink.rows():
        op, text = row.pop("_op"), normal(row.values())
        by_key.pop(row.get(key), None)
        if op != "d":
            by_key[row.get(key)] = text
        found[text] += {"i": 1, "d": -1, "u": 0}[op]
    table = Counter(by_key.values()) if key else +found
    assert table == batch(spark, KEPT[name], Counter(ROWS[:-1]))
