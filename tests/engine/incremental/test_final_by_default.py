"""Into sinks that take no updates, the result of bounded inputs is delivered once: exactly what a batch query gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from tests.servers.postgres import Database
from tests.warm import Done

from millstream.engine.lowering.nodes import Lowering
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
ROWS = "rows: [{k: a, v: 1}, {k: b, v: 5}, {k: a, v: 3}, {k: c, v: 4}], rows_per_epoch: 1"
OUTER = "{type: join, kind: left, left: t, right: u, on: [k], unbounded: true}"
NODES = {
    "SQL": ('{type: sql, sql: "SELECT k, v FROM t ORDER BY v DESC LIMIT 2"}', [("b", 5), ("c", 4)]),
    "aggregate": ("{type: aggregate, from: changing, aggregate: {k: max(k), v: sum(n)}}", [("c", 4)]),
    "join": (OUTER, [("a", 1), ("a", 3), ("b", 5), ("c", 4)]),
}


def text(node: str, postgres: Database, schema: str, more: str = "", sink: str = "") -> str:
    return f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{t: {{type: memory, {ROWS}}}, u: {{type: memory, rows: [{{k: a}}, {{k: z}}]}}}}
        transforms:
          changing: {{type: sql, sql: "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > 0"}}
          q: {node}
        sinks:
          out: {{type: postgres, from: q, schema: {schema}, table: r{sink}}}
          all: {{type: blackhole, from: changing}}
          rest: {{type: blackhole, from: u}}
          {more}
    """


@pytest.mark.parametrize("name", NODES)
def test_a_sink_without_a_key_gets_the_result_once(
    name: str, pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database
) -> None:
    node, expected = NODES[name]
    schema = postgres.schema()
    topology = pipeline(text(node, postgres, schema))
    run(topology)
    assert sorted(postgres.rows(f"SELECT k, v FROM {schema}.r")) == expected
    run(topology)
    assert len(postgres.rows(f"SELECT k, v FROM {schema}.r")) == len(expected), "the job is done, as the decision is remembered"


@pytest.mark.parametrize(
    ("more", "sink"), [("more: {type: memory, from: q}", ""), ("", ", mode: upsert")], ids=["another sink takes them", "upsert"]
)
def test_otherwise_a_missing_key_is_refused(
    more: str, sink: str, pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database
) -> None:
    with pytest.raises(RunError, match="MS118"):
        run(pipeline(text(NODES["SQL"][0], postgres, postgres.schema(), more, sink)))


def test_without_the_decision_it_would_be_refused(
    pipeline: Callable[..., Topology], run: Callable[..., Report], postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(Lowering, "_require_takers", lambda *_: None)
    with pytest.raises(RunError, match="MS118"):
        run(pipeline(text(NODES["SQL"][0], postgres, postgres.schema())))


def test_plan_shows_it(warm: Callable[..., Done], tmp_path: Path, postgres: Database) -> None:
    (tmp_path / "p.yaml").write_text("name: p\n" + dedent(text(NODES["SQL"][0], postgres, postgres.schema())))
    shown = warm("plan", "p.yaml").stdout
    assert "q is incremental: its result is returned once, since its sinks take no updates" in shown, shown
    assert "state in: q; its result once, when the inputs have ended" in shown
    assert "keeps the first 2 rows\n" in shown
