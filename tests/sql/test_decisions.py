"""Where a query's text does not show that it needs rows of several epochs, Spark's plan does: the query is kept up to date."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.incremental.keeper import applied

from millstream.checkpoint.layout import Checkpoint
from millstream.clients.storage import open_storage
from millstream.connectors.memory.sink import MemorySink
from millstream.engine.decisions import recall
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.document import node_document
from millstream.plan.run_options import checkpoint_of
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
PIPES = "FROM t |> AGGREGATE sum(v) AS s GROUP BY k |> WHERE s > 3"
"""Pipes, which the offline parser does not read."""
WINDOWS = (
    "SELECT a.window.start AS at, a.n, b.m FROM (SELECT window, count(*) AS n FROM t GROUP BY window(at, '2 minutes')) a JOIN "
    "(SELECT window, sum(v) AS m FROM t GROUP BY window(at, '1 minute')) b ON a.window.start = b.window.start"
)
"""Windows that close at different times."""
DISTINCT = (
    "SELECT window.start AS w, count(DISTINCT struct(d, k)) AS n, count(DISTINCT d, k) AS m, count(DISTINCT array(d)) AS o "
    "FROM (SELECT *, if(v % 4 < 2, 0.0D, -0.0D) AS d FROM t) GROUP BY window(at, '5 minutes')"
)
"""Spark's sets, with which windows count, take 0.0 and -0.0 inside a value for two; batch queries do not."""


def _pipeline(pipeline: Callable[..., Topology], sql: str, more: str = "", below: str = "") -> Topology:
    rows = ", ".join(f"{{k: {'ab'[number % 2]}, v: {number}, at: '2024-01-01T00:0{number}:00Z'}}" for number in range(6))
    return pipeline(f"""
        sources:
          t:
            type: memory
            rows: [{rows}]
            schema: {{k: string, v: int64, at: timestamp}}
            rows_per_epoch: 2
            event_time: {{column: at, watermark: 0s}}
        transforms: {{q: {{type: sql, from: t, {more} sql: "{sql}"}}, {below}}}
        sinks: {{out: {{type: memory, from: {"r" if below else "q"}}}}}
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
    """Of the node itself, and of no node below it."""
    below = "r: {type: filter, from: q, where: n > 0}"
    run(_pipeline(pipeline, DISTINCT, below=below))
    again = _pipeline(pipeline, DISTINCT, below=below)
    monkeypatch.setattr("millstream.engine.engine.find_misjudged", lambda *_: pytest.fail("decided twice"))
    run(again, again=True)
    found = recall(again, Checkpoint(open_storage(checkpoint_of(again)), "p"))
    pairs = zip(again.transforms, found.transforms, strict=True)
    changed = [node.name for node, decided in pairs if node.component.incremental != decided.component.incremental]
    assert changed == ["q"] and node_document(found.node("q")) == node_document(again.node("q")), "the options are the user's"


def test_what_has_no_other_form_is_refused_once(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    with pytest.raises(RunError, match=r"MS030.*collate utf8_lcase.*cast it to another type"):
        run(_pipeline(pipeline, "SELECT k COLLATE UTF8_LCASE AS c, count(*) AS n FROM t GROUP BY 1"))


@pytest.mark.parametrize("window", ["", ", window(at, '1 minute')"])
def test_rows_are_not_grouped_by_maps_whose_nulls_would_become_0(
    pipeline: Callable[..., Topology], run: Callable[..., Report], window: str
) -> None:
    with pytest.raises(RunError, match=r"MS030.*map.*map_entries"):
        run(_pipeline(pipeline, f"SELECT map('x', nullif(v, 1)) AS m, count(*) AS n FROM t GROUP BY map('x', nullif(v, 1)){window}"))


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


def test_zeros_inside_values_are_counted_once(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    topology = _pipeline(pipeline, DISTINCT)
    run(topology)
    assert sorted(row[1:] for row in applied([_changes(topology)], (0,))) == [(1, 1, 1), (2, 2, 1)]
