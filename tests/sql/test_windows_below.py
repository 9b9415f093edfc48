"""Windows and joins within a time inside an incremental query stay with Spark's stream: it forgets what the watermark has passed, and their
rows feed the rest.
"""
# ruff: noqa: E501 — the statements are read line by line

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from tests.stateful.conftest import at

from millstream.connectors.memory.sink import MemorySink
from millstream.engine.incremental.maintenance import Maintenance
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS = [
    {"id": 1, "k": "a", "v": 1, "at": at(1)},
    {"id": 2, "k": "b", "v": 9, "at": at(4)},
    {"id": 3, "k": "a", "v": 7, "at": at(12)},
    {"id": 4, "k": "c", "v": 2, "at": at(25)},
    {"id": 5, "k": "a", "v": 3, "at": at(33)},
    {"id": 6, "k": "b", "v": 5, "at": at(47)},
    {"id": 7, "k": "b", "v": 4, "at": at(61)},
]
OTHERS = [{**row, "id": 10 + index, "v": index} for index, row in enumerate(ROWS[:5])]
TABLES = {"t": ROWS, "u": OTHERS, "untimed": OTHERS}
TENS = "SELECT window(at, '10 seconds') w, k, count(*) n, sum(v) s FROM t GROUP BY 1, 2"
THIRTIES = "SELECT window(at, '30 seconds') w, k, count(DISTINCT v) n FROM t GROUP BY 1, 2"
SESSIONS = "SELECT session_window(at, '10 seconds') w, count(*) n FROM t GROUP BY 1"
QUERIES = {
    "the best of all windows": (f"SELECT w.start at, k, s FROM ({TENS}) ORDER BY s DESC, k LIMIT 3", "top rows"),
    "an aggregate over all windows": (f"SELECT k, max(s) m, count(*) c FROM ({TENS}) GROUP BY k", "sums"),
    "the best of each window, added up": (
        f"SELECT k, count(*) c FROM (SELECT *, row_number() OVER (PARTITION BY w ORDER BY s DESC, k) r FROM ({TENS})) WHERE r = 1 GROUP BY k",
        "by window sums",
    ),
    "windows of two sizes": (
        f"SELECT x.w.start a, x.k, x.s, y.n FROM ({TENS}) x JOIN ({THIRTIES}) y ON x.w.start = y.w.start AND x.k = y.k",
        "inner join",
    ),
    "a window joined with rows": (
        f"SELECT t.id, x.s FROM t JOIN ({TENS}) x ON t.k = x.k AND t.at >= x.w.start AND t.at < x.w.end",
        "inner join",
    ),
    "sessions": (f"SELECT max(n) m, count(*) c FROM ({SESSIONS})", "sums"),
    "overlapping sessions, which are merged": (
        "SELECT w, count(*) c, sum(n) n FROM (SELECT session_window(at, '10 seconds') w, k, count(*) n FROM t GROUP BY 1, 2) GROUP BY w",
        "by key by key",
    ),
    "the first of merged sessions": (
        "SELECT DISTINCT w FROM (SELECT session_window(at, '10 seconds') w, k FROM t GROUP BY 1, 2) ORDER BY w LIMIT 2",
        "by key by key",
    ),
    "windows of a chain": (
        f"WITH x AS ({TENS}), y AS (SELECT w, sum(s) s FROM x GROUP BY w) SELECT count(*) c, max(s) m FROM y WHERE s > 3",
        "by window sums",
    ),
    "a window twice": (
        f"WITH x AS ({TENS}) SELECT p.k, count(*) c FROM x p JOIN x q ON p.w = q.w AND p.k <> q.k GROUP BY p.k",
        "by window sums",
    ),
    "rows within a time": ("SELECT t.id, u.id j FROM t JOIN u ON t.k = u.k AND t.at BETWEEN u.at AND u.at + INTERVAL 20 SECONDS", ""),
    "a bound in WHERE": (
        "SELECT t.k, sum(u.v) s FROM t, u WHERE t.k = u.k AND t.at >= u.at AND t.at < u.at + INTERVAL 30 SECONDS GROUP BY t.k",
        "sums",
    ),
    "an outer join within a time": (
        "SELECT u.k, count(t.id) n FROM u LEFT JOIN t ON t.k = u.k AND t.at > u.at AND t.at < u.at + INTERVAL 30 SECONDS GROUP BY u.k",
        "sums",
    ),
    "a join without a bound": ("SELECT t.id, u.id j FROM t JOIN u ON t.k = u.k AND t.at >= u.at", "inner join"),
    "windows over a join": (
        "SELECT max(n) m FROM (SELECT count(*) n FROM t JOIN u ON t.k = u.k AND t.at BETWEEN u.at AND u.at + INTERVAL 20 SECONDS GROUP BY window(t.at, '10 seconds'))",
        "sums",
    ),
    "a subquery in a window": (
        "SELECT max(s) s, max(y) y FROM (SELECT window(at, '10 seconds') w, count(*) s, (SELECT max(v) FROM u ) y FROM t GROUP BY 1)",
        None,
    ),
    "groups without a window": (
        "SELECT k, sum(n) n FROM (SELECT window, k, count(*) n FROM t GROUP BY GROUPING SETS ((window(at, '10 seconds'), k), (k))) GROUP BY k",
        None,
    ),
    "a window of an outer row": (
        "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.k GROUP BY window(t.at, '10 seconds') HAVING count(*) > 0)",
        None,
    ),
    "times of which one is no event time": ("SELECT t.id, untimed.id j FROM t JOIN untimed ON t.at = untimed.at", None),
    "a column twice": (
        "SELECT k, sum(n) n FROM (SELECT k, k AS j, window w, count(*) n, count(*) m FROM t GROUP BY k, window(at, '10 seconds')) GROUP BY k",
        "sums",
    ),
}

ALL_INCREMENTAL = {"a join without a bound", "overlapping sessions, which are merged", "the first of merged sessions"}


def document(sql: str, **node: Any) -> dict[str, Any]:
    common = {"type": "memory", "rows_per_epoch": 3, "event_time": {"column": "at", "watermark": "0s"}}
    sources = {"u": {**common, "rows": OTHERS}, "t": {**common, "rows": ROWS}, "untimed": {**common, "rows": OTHERS}}
    del sources["untimed"]["event_time"]
    read = {name: source for name, source in sources.items() if re.search(rf"\b{name}\b", sql)}
    sink = {"type": "memory", "from": "q"}
    return {"name": "p", "sources": read, "transforms": {"q": {"type": "sql", "sql": sql, **node}}, "sinks": {"out": sink}}


def normal(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(json.dumps({name: value for name, value in row.items() if name != "_op"}, sort_keys=True, default=str) for row in rows)


def table(rows: list[dict[str, Any]], key: tuple[str, ...] | None) -> list[dict[str, Any]]:
    """The table that changes describe, by a key or by whole rows."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name != "_op"}
        place = json.dumps([values[name] for name in (key if key is not None else values)], default=str)
        same = found.setdefault(place, [])
        if key is not None:
            assert bool(same) == (row["_op"] != "i"), f"{row} does not fit what is there"
            same.clear()
        if row["_op"] == "d" and key is None:
            same.remove(values)
        elif row["_op"] != "d":
            same.append(values)
    return [row for same in found.values() for row in same]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Maintenance]:
    """What keeps the queries of the test up to date."""
    found: list[Maintenance] = []
    prepare = Maintenance.prepare

    def remember(self: Maintenance, *arguments: Any) -> None:
        prepare(self, *arguments)
        found.append(self)

    monkeypatch.setattr(Maintenance, "prepare", remember)
    return found


def answer(topology: Topology, key: tuple[str, ...] | None) -> list[dict[str, Any]]:
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    return table(sink.rows(), key)


def batch(spark: SparkSession, sql: str) -> Counter[str]:
    for name, rows in TABLES.items():
        spark.createDataFrame(pa.Table.from_pylist(rows)).createOrReplaceTempView(name)
    try:
        return normal(spark.sql(sql).toArrow().to_pylist())
    finally:
        for name in TABLES:
            spark.catalog.dropTempView(name)


@pytest.mark.parametrize(("name", "late"), [*((name, "drop") for name in QUERIES), ("windows of two sizes", None)])
def test_what_the_watermark_bounds_is_left_to_the_stream(
    name: str, late: str | None, pipeline: Callable[..., Topology], run: Callable[..., Report], spark: SparkSession, kept: list[Maintenance]
) -> None:
    """Results close one by one; without `late`, at the end of the bounded input."""
    sql, operators = QUERIES[name]
    topology = pipeline(yaml.safe_dump(document(sql, **({"late": late} if late else {}))))
    report = run(topology)
    view = kept[-1].view
    assert bool(view.compilation.streamed) == (name not in ALL_INCREMENTAL and operators is not None)
    if operators is not None:
        assert " ".join(each.kind for each in view.operators if each.kind not in {"input", "native", "row by row", "shared"}) == operators
    assert normal(answer(topology, kept[-1].key)) == batch(spark, sql)
    assert all(report.nodes[node.name].rows_out == len(TABLES[node.name]) for node in topology.sources)
    state = report.nodes["q"].state
    assert state is not None and state.rows == sum(each.rows for each in state.operators)
    assert any(each.kind.startswith("native") for each in state.operators) == bool(view.compilation.streamed)
