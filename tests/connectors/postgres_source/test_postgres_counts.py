"""Rows read from Postgres are the rows that the table gave, once: behind a filter, and for several queries."""

from collections.abc import Callable

import pytest
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark


def test_rows_are_counted_once(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    table = f"{postgres.schema()}.t"
    postgres.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v int)", f"INSERT INTO {table} SELECT n, n FROM generate_series(1, 4) n")
    report = run(
        pipeline(f"""
            connections: {{postgres: {postgres.connection}}}
            sources: {{o: {{type: postgres, table: {table}, mode: {{type: bounded}}}}}}
            transforms:
              t: {{type: filter, from: o, where: v > 3}}
              a: {{type: aggregate, from: o, key_by: id, aggregate: {{n: count(*)}}}}
            sinks: {{out: {{type: memory, from: t}}, totals: {{type: memory, from: a}}}}
        """)
    )
    assert (report.nodes["o"].rows_out, report.nodes["out"].rows_in, report.nodes["totals"].rows_in) == (4, 1, 4)
