"""Every type of a stream has a type in a new table, and its values arrive as they are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isinf, isnan
from typing import Any
from uuid import UUID

import pytest
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
EXPECTED: dict[str, tuple[str, str, Any]] = {
    "a": ("CAST(-7 AS TINYINT)", "smallint", -7),
    "b": ("CAST(300 AS SMALLINT)", "smallint", 300),
    "c": ("70000", "integer", 70000),
    "d": ("9007199254740993L", "bigint", 9007199254740993),
    "e": ("CAST(12.345 AS DECIMAL(20, 3))", "numeric(20,3)", Decimal("12.345")),
    "f": ("CAST(1.5 AS FLOAT)", "real", 1.5),
    "g": ("0.1D", "double precision", 0.1),
    "h": ("'naïve \U0001f600'", "text", "naïve \U0001f600"),
    "i": ("X'00FF'", "bytea", b"\x00\xff"),
    "j": ("true", "boolean", True),
    "k": ("DATE '1900-02-28'", "date", date(1900, 2, 28)),
    "l": ("TIMESTAMP '2026-01-02 03:04:05.678901'", "timestamp with time zone", AT),
    "m": ("TIMESTAMP_NTZ '2026-01-02 03:04:05.678901'", "timestamp without time zone", AT.replace(tzinfo=None)),
    "n": ("INTERVAL '1 02:03:04' DAY TO SECOND", "interval", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    "o": ("named_struct('x', 1, 'y', CAST(NULL AS STRING))", "jsonb", {"x": 1, "y": None}),
    "p": ("map('k', array(1, 2))", "jsonb", {"k": [1, 2]}),
    "q": ("array('a', NULL)", "jsonb", ["a", None]),
    "r": ("CAST(NULL AS STRING)", "text", None),
    "s": ("'7d444840-9dc0-11d1-b245-5ffdce74fad2'", "uuid", UUID("7d444840-9dc0-11d1-b245-5ffdce74fad2")),
    "t": ("'12:34:56.789'", "time without time zone", time(12, 34, 56, 789000)),
}
TEXT = """
    connections: {{postgres: {connection}}}
    sources: {{one: {{type: memory, rows: [{{id: 1}}]}}}}
    transforms:
      typed: {{type: sql, sql: "SELECT {selected} FROM one"}}
    sinks:
      pg: {{type: postgres, from: typed, schema: {schema}, table: t, {options}}}
"""


def test_types_and_values(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    schema = postgres.schema()
    selected = ", ".join(f"{text} AS {name}" for name, (text, _, _) in EXPECTED.items())
    options = "types: {s: uuid, t: time}"
    run(pipeline(TEXT.format(connection=postgres.connection, selected=selected, schema=schema, options=options)))
    found = dict(
        postgres.rows(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
            f" WHERE attrelid = '{schema}.t'::regclass AND attnum > 0"
        )
    )
    assert found == {name: kind for name, (_, kind, _) in EXPECTED.items()}
    (row,) = postgres.rows(f"SELECT * FROM {schema}.t")
    assert row == tuple(value for _, _, value in EXPECTED.values())


def test_lists_can_be_arrays(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    schema, selected = postgres.schema(), "array(1L, NULL) AS n, array('x') AS s, array(array(1)) AS deep"
    run(pipeline(TEXT.format(connection=postgres.connection, selected=selected, schema=schema, options="arrays: native")))
    assert postgres.rows(f"SELECT n[1], n[2], s[1], deep FROM {schema}.t") == [(1, None, "x", [[1]])]


def test_values_that_are_no_numbers(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    """A numeric without limits holds them as Postgres does; one with a precision refuses infinity, in its own words."""
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.t (nan numeric, inf numeric, big double precision)")
    selected = "double('NaN') AS nan, double('-Infinity') AS inf, double('Infinity') AS big"
    run(pipeline(TEXT.format(connection=postgres.connection, selected=selected, schema=schema, options="create: false")))
    ((nan, inf, big),) = postgres.rows(f"SELECT nan, inf, big FROM {schema}.t")
    assert isnan(nan) and isinf(inf) and isinf(big)
