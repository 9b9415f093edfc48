"""A table, its copy, what passes a condition, and its aggregates: random transactions on the one side, equal tables on the other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from hypothesis import strategies as st
from psycopg.types.json import Jsonb
from tests.servers.postgres import Database

TABLE = "id int, g text, v int, amount numeric(20,3), ratio float8, at timestamptz, doc jsonb, data bytea, tags text[], free numeric"
NAMES = [column.split()[0] for column in TABLE.split(", ")]
PIPELINE = """
    name: {schema}
    connections: {{postgres: {connection}}}
    sources:
      t: {{type: postgres, table: {schema}.t, mode: {{type: cdc}}, poll_interval: 20ms}}
    transforms:
      some: {{type: sql, sql: "SELECT id, v FROM t WHERE v > 10"}}
    sinks:
      copy: {{type: postgres, from: t, schema: {schema}, table: copy, primary_key: id, arrays: native}}
      some.copy: {{type: postgres, from: some, schema: {schema}, table: some, primary_key: id}}
      totals:
        type: postgres_aggregate
        from: t
        schema: {schema}
        primary_key: id
        landing_table: landing
        agg_table: totals
        group_by: [g]
        aggregate: {{n: {{fn: count}}, known: {{fn: count, from: v}}, s: {{fn: sum, from: v}}, money: {{fn: sum, from: amount}},
                     a: {{fn: avg, from: v}}, lo: {{fn: min, from: v}}, hi: {{fn: max, from: at}}}}
    settings: {{checkpoint: {schema}, profile: short, {settings}}}
"""
ALL_THERE_IS = "trigger: {type: available_now}"
TOTALS = "count(*), count(v), coalesce(sum(v), 0), coalesce(sum(amount), 0), round(avg(v), 6), min(v), max(at)"
PAIRS = {
    "copy": ("TABLE {s}.t", "TABLE {s}.copy"),
    "some": ("SELECT id, v FROM {s}.t WHERE v > 10", "SELECT id, v FROM {s}.some"),
    "totals": (f"SELECT g, {TOTALS} FROM {{s}}.t GROUP BY g", "SELECT g, n, known, s, money, round(a, 6), lo, hi FROM {s}.totals"),
}
"""What is to be equal: the table's side, and ours."""

KEYS = st.integers(0, 6)
_TEXTS = st.sampled_from(["", "a", "b", "it's", 'q"\\\n\t', "ü→𝄞", "null", "\\N"])
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "g": st.sampled_from(["a", "b", None, ""]),
        "v": st.one_of(st.none(), st.integers(5, 15), st.sampled_from([-(2**31), 2**31 - 1])),
        "amount": st.decimals(-(10**15), 10**15, places=3),
        "ratio": st.floats(),
        "at": st.sampled_from([None, "0001-01-01 00:00Z", "1969-12-31 23:59:59.999999Z", "2024-02-29 12:00+05:45", "9999-12-31 23:59Z"]),
        "doc": st.one_of(st.none(), st.builds(Jsonb, st.sampled_from([None, {}, [], {"a": [1, None, "x'\\"]}, 1e300, "", "ü"]))),
        "data": st.one_of(st.none(), st.binary(max_size=3)),
        "tags": st.one_of(st.none(), st.lists(st.one_of(st.none(), _TEXTS), max_size=2)),
        "free": st.sampled_from([None, "NaN", "-0.000000000000000000000000000001", "1e60"]),
    },
)
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("set"), KEYS, VALUES),
    st.tuples(st.just("move"), KEYS, KEYS),
    st.tuples(st.just("delete"), KEYS, st.none()),
    st.tuples(st.just("renew"), KEYS, VALUES),
)
TRANSACTIONS = st.lists(st.tuples(st.lists(STEPS, min_size=1, max_size=6), st.integers(0, 5)), min_size=4, max_size=12)
"""Steps, and a number that is 5 when the transaction is rolled back."""


@dataclass(frozen=True)
class Trip:
    """One table and what is made of it."""

    postgres: Database
    schema: str

    def text(self, settings: str = ALL_THERE_IS) -> str:
        return textwrap.dedent(PIPELINE).format(schema=self.schema, connection=self.postgres.connection, settings=settings)

    def change(self, transactions: list[Any]) -> None:
        with psycopg.connect(self.postgres.address.text, autocommit=True) as connection:
            for steps, number in transactions:
                with connection.transaction(force_rollback=number == 5):
                    for step in steps:
                        self._do(connection, *step)

    def differences(self) -> dict[str, list[Any]]:
        """Rows that are on one side alone."""
        found = {}
        for name, pair in PAIRS.items():
            ours, theirs = (side.format(s=self.schema) for side in pair)
            query = f"(({ours}) EXCEPT ALL ({theirs})) UNION ALL (({theirs}) EXCEPT ALL ({ours}))"
            found[name] = self.postgres.rows(query)
        return {name: rows for name, rows in found.items() if rows}

    def _do(self, connection: psycopg.Connection[Any], what: str, key: int, value: Any) -> None:
        table = f"{self.schema}.t"
        if what in {"delete", "renew"}:
            connection.execute(f"DELETE FROM {table} WHERE id = %s", [key])
        if what in {"put", "renew"}:
            names = ", ".join(["id", *value])
            updates = ", ".join(f"{name} = EXCLUDED.{name}" for name in ["id", *value])
            marks = ", ".join(["%s"] * (len(value) + 1))
            query = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {updates}"
            connection.execute(query, [key, *value.values()])
        if what == "set" and value:
            query = f"UPDATE {table} SET {', '.join(f'{name} = %s' for name in value)} WHERE id = %s"
            connection.execute(query, [*value.values(), key])
        if what == "move":
            query = f"UPDATE {table} SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM {table} WHERE id = %s)"
            connection.execute(query, [value, key, value])


@contextmanager
def trip(postgres: Database) -> Iterator[Trip]:
    """Empty tables in a schema of their own; slot and publication are gone in the end."""
    made = Trip(postgres, postgres.schema())
    postgres.run(f"CREATE TABLE {made.schema}.t ({TABLE}, PRIMARY KEY (id))")
    postgres.run(f"CREATE TABLE {made.schema}.copy (LIKE {made.schema}.t INCLUDING ALL)")
    yield made
    slot = f"millstream_{made.schema}_t"
    postgres.run(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{slot}'")
    postgres.run(f"DROP PUBLICATION IF EXISTS {slot}")
