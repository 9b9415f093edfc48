"""`emit: final`: a bounded input's result is returned once, as plain rows, exactly as a batch query returns it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.connectors.memory.sink import MemorySink
from millstream.errors import SpecError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

SOURCE = "t: {type: memory, rows: [{k: a, v: 1}, {k: b, v: 9}, {k: a, v: 7}, {k: c, v: 2}, {k: c, v: 9}], rows_per_epoch: 2}"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT k, sum(v) AS s FROM t GROUP BY k ORDER BY s DESC, k LIMIT 2", [("c", 11), ("b", 9)]),
        ("SELECT k FROM t GROUP BY k ORDER BY sum(v)", [("a",), ("b",), ("c",)]),
        ("SELECT k, v FROM t WHERE v > 1 ORDER BY v, k", [("c", 2), ("a", 7), ("b", 9), ("c", 9)]),
        ("SELECT count(*) AS n FROM t WHERE v > 100", [(0,)]),
        ("SELECT k FROM t WHERE v = 1", [("a",)]),
    ],
)
def test_the_result_comes_once_and_in_order(
    sql: str, rows: list[tuple[object, ...]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    topology = pipeline(f"""
        sources: {{{SOURCE}}}
        transforms: {{q: {{type: sql, emit: final, sql: "{sql}"}}}}
        sinks: {{out: {{type: memory, from: q}}}}
    """)
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    assert [tuple(row.values()) for row in sink.rows()] == rows


def test_an_input_without_an_end_has_no_final_result(pipeline: Callable[..., Topology]) -> None:
    with pytest.raises(SpecError, match=r"MS179.*`clicks` never ends"):
        pipeline("""
            sources: {clicks: {type: file, path: in, format: json, schema: {k: string}}}
            transforms: {q: {type: sql, emit: final, sql: "SELECT k, count(*) AS n FROM clicks GROUP BY k"}}
            sinks: {out: {type: memory, from: q}}
        """)
