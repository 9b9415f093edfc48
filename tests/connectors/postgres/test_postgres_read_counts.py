"""Rows read are counted once, also where a table judges the rows and bad ones of two nodes share a dead letter."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark


def test_a_judging_sink_does_not_halve_them(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    schema = postgres.schema()
    topology = pipeline(f"""
        connections: {{postgres: {postgres.connection}}}
        sources:
          events:
            {{type: file, path: in, format: json, schema: {{id: int64, v: int64}}, mode: {{type: bounded}}, on_error: {{dead_letter: bad}}}}
        sinks:
          pg: {{type: postgres, from: events, schema: {schema}, table: t, primary_key: id, on_error: {{dead_letter: bad}}}}
          bad: {{type: memory}}
    """)
    postgres.run(f"CREATE TABLE {schema}.t (id bigint PRIMARY KEY, v bigint CHECK (v < 9))")
    Path("in").mkdir()
    lines = [json.dumps({"id": n, "v": n}) for n in range(10)] + ["{broken"]
    Path("in/a.json").write_text("\n".join(lines) + "\n")
    nodes = run(topology).nodes
    assert (nodes["events"].rows_out, nodes["pg"].rows_in, nodes["bad"].rows_in) == (11, 9, 2)
    assert (nodes["events"].rejected, nodes["pg"].rejected) == (1, 1)


def test_a_changelog_is_counted_before_its_rows_are_collapsed(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    schema = postgres.schema()
    rows = [{"id": n % 2, "v": n, "_op": "u"} for n in range(6)]
    topology = pipeline(f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{changes: {{type: memory, rows: {json.dumps(rows)}}}}}
        transforms: {{doubled: {{type: sql, sql: "SELECT id, v * 2 AS v FROM changes"}}}}
        sinks: {{pg: {{type: postgres, from: doubled, schema: {schema}, table: t, primary_key: id}}}}
    """)
    nodes = run(topology).nodes
    assert (nodes["changes"].rows_out, nodes["pg"].rows_in) == (6, 2)
    assert "doubled" not in nodes or nodes["doubled"].rows_out is None
