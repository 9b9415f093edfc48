"""Where a query's text does not show that it needs rows of several epochs, Spark's plan does: the query is kept up to date."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.incremental.keeper import applied

from millstream.connectors.memory.sink import MemorySink
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
PIPES = "FROM t |> AGGREGATE sum(v) AS s GROUP BY k |> WHERE s > 3"
"""Pipes, which the offline parser does not read."""
WINDOWS = (
    "SELECT a.window.start AS at, a.n, b.m FROM (SELECT window, count(*) AS n FROM t GROUP BY window(at, '2 minutes')) a JOIN "
    "(SELECT window, sum(v) AS m FROM t GROUP BY window(at, '1 minute')) b ON a.window.start = b.window.start"
)
"""Windows that close at different times."""


def _pipeline(pipeline: Callable[..., Topology], sql: str, more: str = "") -> Topology:
    rows = ", ".join(f"{{k: {'ab'[number % 2]}, v: {number}, at: '2024-01-01T00:0{number}:00Z'}}" for number in range(6))
    return pipeline(f"""
        sources:
          t: {{type: memory, rows: [{rows}], schema: {{k: string, v: int64, at: timestamp}}, rows_per_epoch: 2}}
        transforms: {{q: {{type: sql, from: t, {more} sql: "{sql}"}}}}
        sinks: {{out: {{type: memory, from: q}}}}
    """)


def _changes(topology: Topology) -> list[tuple[object, ...]]:
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    return [tuple(row.values()) for row in sink.rows()]


def test_a_text_that_only_spark_reads_is_kept_up_to_date(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = _pipeline(pipeline, PIPES)
    run(topology)
    assert applied([_changes(topology)], (0,)) == {("a", 6): 1, ("b", 9): 1}


def test_the_next_run_knows_it(pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    run(_pipeline(pipeline, PIPES))
    monkeypatch.setattr("millstream.engine.engine.revise", lambda *_: pytest.fail("decided twice"))
    run(_pipeline(pipeline, PIPES), again=True)


def test_windows_that_close_at_different_times_are_joined(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = _pipeline(pipeline, WINDOWS)
    run(topology)
    table = applied([_changes(topology)], None)
    assert sorted(row[1:] for row in table) == [(2, 0), (2, 2), (2, 4)]


def test_windows_return_their_changes_when_asked(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    sql = "SELECT window.start AS at, sum(v) AS s FROM t GROUP BY window(at, '4 minutes')"
    topology = _pipeline(pipeline, sql, "emit: changes,")
    run(topology)
    changes = _changes(topology)
    assert [row[1:] for row in changes] == [(1, "i"), (6, "u"), (9, "i")]
