"""Random changelogs: keys that come, change, go and come back, within epochs and across them. Tables equal what memory says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

TEXT = """
    name: {schema}
    connections: {{postgres: {connection}}}
    sources:
      changes: {{type: memory, rows_per_epoch: 7, rows: {rows}, schema: {{id: int64, g: string, v: int64, _op: string, _seq: int64}}}}
    sinks:
      latest: {{type: postgres, from: changes, schema: {schema}, table: latest, primary_key: id}}
      totals:
        type: postgres_aggregate
        from: changes
        schema: {schema}
        primary_key: id
        landing_table: landing
        agg_table: totals
        group_by: {{label: {{from: g}}}}
        aggregate: {{n: {{fn: count}}, known: {{fn: count, from: v}}, s: {{fn: sum, from: v}}, a: {{fn: avg, from: v}},
                     lo: {{fn: min, from: v}}, hi: {{fn: max, from: v}}}}
      everything:
        type: postgres_aggregate
        from: changes
        schema: {schema}
        primary_key: id
        landing_table: all_rows
        agg_table: everything
        aggregate: {{n: {{fn: count}}, s: {{fn: sum, from: v}}}}
"""
CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", None]), st.one_of(st.none(), st.integers(-3, 3)), st.booleans()),
    min_size=20,
    max_size=40,
)
Current = dict[int, tuple[str | None, int | None]]


def changelog(changes: list[tuple[int, str | None, int | None, bool]]) -> tuple[list[dict[str, Any]], Current]:
    """Rows, and what is there in the end."""
    rows, current = list[dict[str, Any]](), Current()
    for seq, (id_, group, value, deletes) in enumerate(changes):
        op = "i" if id_ not in current else "d" if deletes else "u"
        rows.append({"id": id_, "g": group, "v": value, "_op": op, "_seq": seq})
        if op == "d":
            del current[id_]
        else:
            current[id_] = (group, value)
    return rows, current


def totals(current: Current) -> dict[str | None, tuple[Any, ...]]:
    groups: dict[str | None, list[int | None]] = {}
    for group, value in current.values():
        groups.setdefault(group, []).append(value)
    found = {}
    for group, values in groups.items():
        known = [value for value in values if value is not None]
        mean = sum(known) / len(known) if known else None
        found[group] = (len(values), len(known), sum(known), mean, min(known, default=None), max(known, default=None))
    return found


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(CHANGES)
def test_tables_and_aggregates_equal_the_current_rows(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], changes: list[Any]
) -> None:
    schema, (rows, current) = postgres.schema(), changelog(changes)
    text = str(rows).replace("None", "null")
    run(pipeline(TEXT.format(schema=schema, connection=postgres.connection, rows=text), schema))
    assert {id_: (g, v) for id_, g, v in postgres.rows(f"SELECT id, g, v FROM {schema}.latest")} == current
    found = {row[0]: row[1:] for row in postgres.rows(f"SELECT label, n, known, s, a, lo, hi FROM {schema}.totals")}
    assert found == {group: pytest.approx(values) for group, values in totals(current).items()}
    known = [value for _, value in current.values() if value is not None]
    assert postgres.rows(f"SELECT n, s FROM {schema}.everything") == [(len(current), sum(known))]


def test_deltas_count_each_by_itself(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    schema = postgres.schema()
    rows = "[{g: x, v: 5, _op: i}, {g: x, v: 7, _op: i}, {g: x, v: 5, _op: d}, {g: y, v: 1, _op: i}, {g: y, v: 1, _op: d}]"
    text = f"""
        connections: {{postgres: {postgres.connection}}}
        sources: {{deltas: {{type: memory, rows: {rows}}}}}
        sinks:
          totals: {{type: postgres_aggregate, from: deltas, schema: {schema}, landing_table: l, agg_table: t, deduplicate: false,
                    group_by: [g], aggregate: {{s: {{fn: sum, from: v, type: bigint}}, n: {{fn: count}}}}}}
    """
    run(pipeline(text))
    assert postgres.rows(f"SELECT g, s, n FROM {schema}.t") == [("x", 7, 1)]
