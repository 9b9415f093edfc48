"""SQL over a stream gives the batch answer or is refused: never an answer that depends on where epochs are cut.

Every statement runs with one row per epoch and windows that close one by one, as the reader of a source and below a fan-out, where nodes
are built epoch by epoch.
"""
# ruff: noqa: E501 — the statements are read line by line

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from tests.stateful.conftest import at

from millstream.connectors.memory.sink import MemorySink
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = [
    {"id": 1, "k": "a", "v": 1, "d": 0.0, "at": at(1)},
    {"id": 2, "k": "b", "v": 9, "d": -0.0, "at": at(4)},
    {"id": 3, "k": "a", "v": 7, "d": 1.5, "at": at(12)},
    {"id": 4, "k": "A", "v": 2, "d": 1.5, "at": at(25)},
    {"id": 5, "k": "a", "v": 3, "d": -0.0, "at": at(33)},
    {"id": 6, "k": "b", "v": 5, "d": 0.0, "at": at(47)},
    {"id": 7, "k": "b", "v": 4, "d": 2.5, "at": at(61)},
]
TENS = "SELECT window(at, '10 seconds') w, count(*) n, sum(v) s FROM t GROUP BY 1"
THIRTIES = "SELECT window(at, '30 seconds') w, count(*) n FROM t GROUP BY 1"
KEYED = "SELECT window(at, '10 seconds') w, k, count(*) n, sum(v) s FROM t GROUP BY 1, 2"
REFUSED = {
    "TABLESAMPLE": "SELECT id FROM t TABLESAMPLE (50 PERCENT)",
    "DISTINCT maps": "SELECT window(at, '1 minute') w, count(DISTINCT map(k, d)) n FROM t GROUP BY 1",
    "COLLATE": "SELECT window(at, '1 minute') w, k COLLATE UTF8_LCASE c, count(*) n FROM t GROUP BY 1, 2",
    "a running COLLATE": "SELECT k COLLATE UTF8_LCASE c, count(*) n FROM t GROUP BY 1",
}
RIGHT = {
    "mean": "SELECT mean(v) m FROM t",
    "try_sum": "SELECT try_sum(v) m FROM t",
    "try_avg": "SELECT try_avg(v) m FROM t",
    "every": "SELECT every(v > 1) m FROM t",
    "some": "SELECT some(v > 8) m FROM t",
    "std": "SELECT std(v) m FROM t",
    "any": "SELECT any(v > 8) m FROM t",
    "a sketch": "SELECT hll_sketch_estimate(hll_sketch_agg(v)) m FROM t",
    "a window of a subselect": "SELECT w, count(*) n FROM (SELECT window(at, '10 seconds') w, k FROM t) GROUP BY w",
    "totals": "SELECT k, count(*) n, sum(v) s FROM t GROUP BY k",
    "totals in another case": "WITH Sums AS (SELECT k, sum(v) s FROM T GROUP BY k) SELECT k, s * 2 d FROM sums",
    "totals by all": "SELECT k, v % 2 AS odd, count(*) n FROM t GROUP BY ALL",
    "one total by all": "SELECT count(*) n FROM t GROUP BY ALL",
    "totals of joined rows": "SELECT x.b, count(*) n FROM t JOIN VALUES ('a', 1), ('b', 2) AS x(a, b) ON t.k = x.a GROUP BY x.b",
    "rows of the query itself": "SELECT t.id, x.b, r.id i FROM t JOIN VALUES ('a', 1), ('b', 2) AS x(a, b) ON t.k = x.a CROSS JOIN range(2) r",
    "a semi join by window": f"SELECT x.k, x.n FROM ({KEYED}) x LEFT SEMI JOIN ({TENS}) y ON x.w = y.w AND y.n > 1",
    "an anti join by window": f"SELECT x.k, x.n FROM ({KEYED}) x LEFT ANTI JOIN (SELECT * FROM ({TENS}) WHERE n > 1) y ON x.w = y.w",
    "a key that is also the alias of an aggregate": "SELECT k AS a, count(*) AS k FROM t GROUP BY k",
    "a pipe": "FROM t |> WHERE v > 2 |> EXTEND v * 2 AS d2 |> SELECT id, d2",
    "totals by a pipe": "FROM t |> AGGREGATE count(*) AS n GROUP BY k",
    "windows": f"SELECT w.start s, n FROM ({TENS}) WHERE n > 0",
    "rollup": "SELECT window.end e, k, count(*) n FROM t GROUP BY window(at, '10 seconds'), ROLLUP(k)",
    "sliding": "SELECT window.end e, count(*) n FROM t GROUP BY window(at, '20 seconds', '10 seconds')",
    "the first of each window": f"SELECT w, k FROM (SELECT *, row_number() OVER (PARTITION BY w ORDER BY s DESC, k) r FROM ({KEYED})) WHERE r = 1",
    "the first of each named window": f"SELECT w, k FROM (SELECT *, row_number() OVER o r FROM ({KEYED}) WINDOW o AS (PARTITION BY w ORDER BY s DESC, k)) WHERE r = 1",
    "an aggregate by window": f"SELECT w.end e, max(n) m, count(DISTINCT k) c FROM ({KEYED}) GROUP BY w",
    "a join by window": f"SELECT x.k, x.n, y.s FROM ({KEYED}) x JOIN ({TENS}) y ON x.w = y.w",
    "a full join by window": f"SELECT coalesce(x.w, y.w) w, x.n, y.s FROM (SELECT * FROM ({TENS}) WHERE n > 1) x FULL JOIN ({TENS}) y ON x.w = y.w",
    "windows of one size in other words": f"SELECT x.n FROM ({TENS}) x JOIN (SELECT window(at, '10000 milliseconds') w FROM t GROUP BY 1) y USING (w)",
    "LATERAL of the row": "SELECT id, x FROM t, LATERAL (SELECT v + 1 AS x)",
    "LATERAL VIEW": "SELECT id, x FROM t LATERAL VIEW explode(array(v, id)) AS x",
}


NAMED = {"MS030", "MS066"}
"""A query that a stream cannot answer, and what Spark itself refuses while nothing runs yet."""


def document(sql: str, fanned: bool) -> dict[str, Any]:
    source = {"type": "memory", "rows": ROWS, "rows_per_epoch": 1, "event_time": {"column": "at", "watermark": "0s"}}
    query = {"type": "sql", "sql": sql, **({"late": "drop"} if "window(" in sql else {})}
    sinks = {"out": {"type": "memory", "from": "q"}, **({"other": {"type": "blackhole", "from": "t"}} if fanned else {})}
    return {"name": "p", "sources": {"t": source}, "transforms": {"q": query}, "sinks": sinks}


@pytest.fixture
def answer(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[[str, bool], list[dict[str, Any]]]:
    """What the stream answers; of a changelog, the last row of each key."""

    def go(sql: str, fanned: bool) -> list[dict[str, Any]]:
        topology = pipeline(yaml.safe_dump(document(sql, fanned)))
        run(topology)
        sink = topology.node("out").component
        assert isinstance(sink, MemorySink)
        rows = sink.rows()
        if not any("_op" in row for row in rows):
            return rows
        identity = topology.node("q").component.result_key  # type: ignore[union-attr]  # it is a transform
        return [{**row, "_op": None} for row in {json.dumps([row[name] for name in identity], default=str): row for row in rows}.values()]

    return go


def normal(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(json.dumps({name: value for name, value in row.items() if name != "_op"}, sort_keys=True, default=str) for row in rows)


def batch(spark: SparkSession, sql: str) -> Counter[str]:
    spark.createDataFrame(pa.Table.from_pylist(ROWS)).createOrReplaceTempView("t")
    try:
        return normal(spark.sql(sql).toArrow().to_pylist())
    finally:
        spark.catalog.dropTempView("t")


@pytest.mark.parametrize("fanned", [False, True], ids=["alone", "below a fan-out"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_rows_of_other_epochs_is_refused(name: str, fanned: bool, answer: Callable[[str, bool], list[dict[str, Any]]]) -> None:
    with pytest.raises(MillstreamError) as refused:
        answer(REFUSED[name], fanned)
    assert {finding.code for finding in refused.value.diagnostics} <= NAMED


@pytest.mark.parametrize("name", RIGHT)
def test_what_goes_window_by_window_or_row_by_row_is_right(
    name: str, answer: Callable[[str, bool], list[dict[str, Any]]], spark: SparkSession
) -> None:
    assert normal(answer(RIGHT[name], True)) == batch(spark, RIGHT[name])
