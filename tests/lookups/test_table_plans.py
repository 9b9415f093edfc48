"""How a plan treats dynamic tables: looked at without being made, cut around, staged once, and held against above a root too."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.servers.postgres import Database

from millstream.errors import RunError

pytestmark = pytest.mark.spark
SOURCES = """
sources:
  a: {type: memory, rows: [{id: 1, k: x, at: "2026-01-01T00:00:01Z"}, {id: 2, k: y, at: "2026-01-01T00:00:02Z"}],
      schema: {id: int64, k: string, at: timestamp}, event_time: {column: at, watermark: 1s}}
  b: {type: memory, rows: [{id: 3, k: x, at: "2026-01-01T00:00:01Z"}], schema: {id: int64, k: string, at: timestamp}}
"""
TABLE = "  seen: {type: dynamic_table, backend: sqlite, path: t.db, key: k, columns: {tier: string}}\n"


def _fill() -> None:
    import sqlite3

    with sqlite3.connect("t.db") as connection:
        connection.execute("CREATE TABLE seen (k TEXT PRIMARY KEY, tier TEXT)")
        connection.execute("INSERT INTO seen VALUES ('x', 'gold')")


def _out(topology: object, name: str = "out") -> list[dict]:
    return topology.node(name).component.rows()  # type: ignore[attr-defined]  # a topology with memory sinks


def test_a_plan_is_looked_at_and_makes_nothing(millstream_plan: Callable) -> None:
    text = SOURCES + "transforms:\n" + TABLE + "  s: {type: sql, sql: \"SELECT id FROM a WHERE dynamic_table_check('seen', k)\"}\n"
    done = millstream_plan(text + "sinks: {out: {type: print, from: s}}\n")
    assert done.returncode == 0, done.stderr
    assert not Path("t.db").exists()


def test_several_inputs(pipeline: Callable, run: Callable) -> None:
    sql = (
        "SELECT id FROM a WHERE dynamic_table_check('seen', k) UNION ALL SELECT b.id FROM b JOIN seen s ON b.k = s.k WHERE s.tier = 'gold'"
    )
    topology = pipeline(
        SOURCES + "transforms:\n" + TABLE + f'  s: {{type: sql, sql: "{sql}"}}\nsinks: {{out: {{type: memory, from: s}}}}\n'
    )
    _fill()
    run(topology)
    assert sorted(row["id"] for row in _out(topology)) == [1, 3]


@pytest.mark.parametrize("start", ["window(at, '1 minute').start", "window.start"])
def test_an_aggregate_over_rows_that_were_held_against_a_table(pipeline: Callable, run: Callable, start: str) -> None:
    select = f"SELECT {start} AS at, s.tier, count(*) AS n FROM a LEFT JOIN seen s ON a.k = s.k"
    sql = f"{select} GROUP BY window(at, '1 minute'), s.tier"
    topology = pipeline(
        SOURCES + "transforms:\n" + TABLE + f'  s: {{type: sql, sql: "{sql}"}}\nsinks: {{out: {{type: memory, from: s}}}}\n'
    )
    _fill()
    run(topology)
    assert sorted((row["tier"] or "", row["n"]) for row in _out(topology)) == [("", 1), ("gold", 1)]


def test_several_sinks_get_rows_that_were_looked_up_once(pipeline: Callable, run: Callable) -> None:
    steps = "  s: {type: sql, sql: \"SELECT id, dynamic_table_get('seen', k).tier FROM a\"}\n"
    sinks = "sinks:\n  out: {type: memory, from: s}\n  again: {type: memory, from: s}\n"
    topology = pipeline(SOURCES + "transforms:\n" + TABLE + steps + sinks)
    _fill()
    run(topology)
    assert _out(topology) == _out(topology, "again")
    assert list(Path(".millstream").rglob("staged/a/s/0.json")), "kept in the checkpoint, for a replay too"


LITERAL = """
connections:
  postgres:
    {{host: 127.0.0.1, port: {port}, database: {name}, user: {name}, password: secret://env/PGPASSWORD, sslmode: prefer}}
sources:
  orders:
    {{type: memory, rows: [{{id: 1, user_id: 7}}, {{id: 2, user_id: 8}}, {{id: 3, user_id: 9}}], schema: {{id: int64, user_id: int64}}}}
transforms:
  watched: {{type: dynamic_table, backend: postgres, schema: {schema}, table: watched_users, key: user_id, columns: {{tier: string}},
            cache: {{ttl: 30s, max_rows: 100000}}}}
  vip:
    type: sql
    sql: SELECT o.*, dynamic_table_get('watched', o.user_id).tier FROM orders o WHERE dynamic_table_check('watched', o.user_id)
  named: {{type: lookup, from: vip, table: {schema}.users, on: {{user_id: id}}, select: [name, country], on_missing: "null",
          cache: {{ttl: 5m}}}}
sinks:
  out: {{type: memory, from: named}}
"""


@pytest.mark.parametrize("own", ["text", "bigint", "integer"])
def test_the_file_of_the_guide(own: str, pipeline: Callable, run: Callable, postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, parts = postgres.schema(), postgres.address.parts
    monkeypatch.setenv("PGPASSWORD", parts["password"])
    postgres.run(f"CREATE TABLE {schema}.watched_users (user_id {own} PRIMARY KEY, tier text)")
    postgres.run(f"INSERT INTO {schema}.watched_users VALUES ('7', 'gold'), ('9', 'silver')")
    postgres.run(f"CREATE TABLE {schema}.users (id bigint PRIMARY KEY, name text, country text)")
    postgres.run(f"INSERT INTO {schema}.users VALUES (7, 'Ann', 'DE')")
    topology = pipeline(LITERAL.format(port=parts["port"], name=parts["dbname"], schema=schema))
    report = run(topology)
    assert sorted(_out(topology), key=lambda row: row["id"]) == [
        {"id": 1, "user_id": 7, "tier": "gold", "name": "Ann", "country": "DE"},
        {"id": 3, "user_id": 9, "tier": "silver", "name": None, "country": None},
    ]
    assert (report.nodes["named"].hits, report.nodes["named"].misses) == (1, 1)


def test_a_key_of_another_type_that_only_the_database_knows(pipeline: Callable, run: Callable, postgres: Database) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.seen (k bigint PRIMARY KEY)")
    table = f"  seen: {{type: dynamic_table, backend: postgres, schema: {schema}, key: k}}\n"
    step = "  s: {type: sql, sql: \"SELECT id FROM a WHERE dynamic_table_check('seen', k)\"}\nsinks: {out: {type: memory, from: s}}\n"
    topology = pipeline(f"connections: {{postgres: {postgres.connection}}}\n{SOURCES}transforms:\n{table}{step}")
    with pytest.raises(RunError, match="MS132") as caught:
        run(topology)
    assert caught.value.diagnostics[0].message == "the key of `seen` is `int64`, but it is looked up by `string`"
