"""Nodes above an incremental one are one query with it: rows, totals, conditions and rejects pass from node to node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.connectors.memory.sink import MemorySink
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark


def test_a_chain_of_nodes_is_kept_up_to_date(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline("""
        sources:
          orders: {type: memory, rows: [{u: a, v: 1}, {u: b, v: 9}, {u: a, v: 7}, {u: c, v: 2}, {u: c, v: 9}], rows_per_epoch: 2}
          users: {type: memory, rows: [{u: a, c: de}, {u: b, c: de}, {u: c, c: fr}], rows_per_epoch: 1}
        transforms:
          good: {type: filter, from: orders, where: "CAST(if(v = 2, 'x', '1') AS INT) = 1", on_error: {dead_letter: bad}}
          totals: {type: sql, sql: "SELECT u, sum(v) AS s FROM good GROUP BY u"}
          large: {type: filter, from: totals, where: s > 5}
          countries: {type: sql, sql: "SELECT c, count(*) AS n, sum(s) AS s FROM large JOIN users USING (u) GROUP BY c"}
        sinks:
          bad: {type: memory}
          out: {type: memory, from: countries}
    """)
    run(topology)
    out, bad = (topology.node(name).component for name in ("out", "bad"))
    assert isinstance(out, MemorySink) and isinstance(bad, MemorySink)
    table: dict[str, tuple[int, int]] = {}
    for row in out.rows():
        table.pop(row["c"], None)
        table |= {row["c"]: (row["n"], row["s"])} if row["_op"] != "d" else {}
    assert table == {"de": (2, 17), "fr": (1, 9)}
    assert [row["node"] for row in bad.rows()] == ["good"]


@pytest.mark.parametrize(
    ("steps", "table"),
    [
        (
            """
            totals: {type: aggregate, from: t, key_by: [k], aggregate: {n: count(*)}}
            out_of: {type: aggregate, from: totals, key_by: [n], aggregate: {groups: count(*)}}
            """,
            {(2, 2)},
        ),
        (
            """
            both: {type: join, left: t, right: u, on: [k], unbounded: true}
            out_of: {type: aggregate, from: both, key_by: [k], aggregate: {s: sum(v * w)}}
            """,
            {("a", 80)},
        ),
        (
            """
            totals: {type: aggregate, from: t, key_by: [k], aggregate: {n: count(*)}}
            out_of: {type: join, kind: left, left: totals, right: u, on: [k], unbounded: true}
            """,
            {("a", 2, 10), ("b", 2, None)},
        ),
    ],
    ids=["an aggregate of totals", "an aggregate of joined rows", "a left join of totals"],
)
def test_transforms_are_kept_up_to_date_too(
    steps: str, table: set[tuple[object, ...]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    topology = pipeline(f"""
        sources:
          t: {{type: memory, rows: [{{k: a, v: 1}}, {{k: b, v: 9}}, {{k: a, v: 7}}, {{k: b, v: 1}}], rows_per_epoch: 1}}
          u: {{type: memory, rows: [{{k: a, w: 10}}], rows_per_epoch: 1}}
        transforms:{steps}
        sinks: {{out: {{type: memory, from: out_of}}, seen: {{type: blackhole, from: u}}}}
    """)
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    left: set[tuple[object, ...]] = set()
    for row in sink.rows():
        op, values = row.pop("_op"), tuple(row.values())
        left = {old for old in left if old[0] != values[0]} if op != "d" else left - {values}
        left |= {values} if op != "d" else set()
    assert left == table


def test_a_refusal_points_at_the_node_whose_text_is_refused(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = pipeline("""
        sources: {t: {type: memory, rows: [{k: a, v: 1}]}}
        transforms:
          upper:
            type: sql
            sql: |
              SELECT k, max(v) AS m
              FROM t GROUP BY k
              HAVING max(v) > rand()
          lower: {type: sql, sql: "SELECT m, count(*) AS n FROM upper GROUP BY m"}
        sinks: {out: {type: memory, from: lower}}
    """)
    with pytest.raises(RunError) as caught:
        run(topology)
    (found,) = caught.value.diagnostics
    assert (found.code, found.node, found.span and found.span.line) == ("MS030", "upper", 9)


def test_rows_are_counted_for_the_source_that_delivered_them(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    """Spark numbers its sources in the order in which the query reads them."""
    topology = pipeline("""
        sources:
          users: {type: memory, rows: [{u: a, n: 1}]}
          orders: {type: memory, rows: [{u: a, v: 1}, {u: a, v: 2}, {u: b, v: 3}]}
        transforms:
          latest: {type: sql, sql: "SELECT u, max(n) AS n FROM users GROUP BY u HAVING max(n) > 0"}
          seen: {type: sql, sql: "SELECT o.v, l.n FROM orders o LEFT JOIN latest l ON o.u = l.u"}
        sinks: {out: {type: memory, from: seen}}
    """)
    nodes = run(topology).nodes
    assert (nodes["users"].rows_out, nodes["orders"].rows_out) == (1, 3)
