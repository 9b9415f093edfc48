"""Names are names: quotes, reserved words, and statements in them reach the database as they are, and do no harm."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from tests.servers.postgres import Database

from millstream.clients.postgres import quote_name
from millstream.errors import MillstreamError, RunError, TemporaryError
from millstream.lookups.table import Backend, TableSpec, open_store

NAMES = ['a"b', "select", "x; DROP TABLE keep; --", "x'); DROP TABLE keep; --", "é" * 31, "Mixed Case", "%s", "{0}", "a.b"]


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> TableSpec:
    backend: Backend = request.param
    spec = TableSpec("t", backend, "keep", ("k",), ("v",), {"v": pa.string()}, time_column="at", place=str(tmp_path / "t.db"))
    if backend == "postgres":
        server: Database = request.getfixturevalue("postgres")
        return replace(spec, namespace=server.schema(), address=server.address)
    return replace(spec, place=request.getfixturevalue("redis").url) if backend == "redis" else spec


def _works(spec: TableSpec) -> None:
    store = open_store(spec)
    store.ensure()
    rows = pa.table({spec.keys[0]: ["1", "'; DROP TABLE keep; --"], spec.columns[0]: ["x", "\"'; --"]})
    store.put(rows)
    assert sorted(store.get(rows.select([spec.keys[0]])).to_pylist(), key=str) == sorted(rows.to_pylist(), key=str)
    assert store.delete(rows.select([spec.keys[0]])) == 2
    store.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", ["table", "key", "column", "time_column", "namespace"])
def test_a_name_is_a_name_wherever_it_stands(base: TableSpec, part: str, name: str) -> None:
    kept = open_store(base)
    kept.ensure()
    kept.put(pa.table({"k": ["here"], "v": ["still"]}))
    changes: dict[str, dict] = {
        "table": {"table": name},
        "key": {"keys": (name,)},
        "column": {"columns": (name,), "types": {name: pa.string()}},
        "time_column": {"time_column": name},
        "namespace": {"namespace": name} if base.backend == "postgres" else {},
    }
    other = replace(base, **({"table": "other"} if part not in {"table", "namespace"} else {}) | changes[part])
    _works(other)
    assert kept.first(2).to_pylist() == [{"k": "here", "v": "still"}]
    if base.backend == "postgres" and part == "namespace":
        with psycopg.connect(base.address.text if base.address else "", autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {quote_name(name)} CASCADE")


def test_a_table_of_ones_own_is_used_as_it_is(postgres: Database) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.users (id int PRIMARY KEY, name varchar(9), score numeric, token uuid, extra jsonb)")
    postgres.run(f"INSERT INTO {schema}.users VALUES (1, 'ann', 1.5, '00000000-0000-0000-0000-000000000001', '{{}}')")
    spec = TableSpec("t", "postgres", "users", ("id",), ("name", "score", "token", "extra"), {}, schema, "at", postgres.address)
    store = open_store(spec)
    assert store.ensure().field("id").type == pa.int32()
    (row,) = store.get(pa.table({"id": pa.array([1, 2], pa.int32())})).to_pylist()
    assert (row["name"], float(row["score"]), row["token"][-1], row["extra"]) == ("ann", 1.5, "1", "{}")
    uuids = open_store(replace(spec, keys=("token",), columns=("name",)))
    uuids.ensure()
    assert uuids.get(pa.table({"token": ["no uuid", "00000000-0000-0000-0000-000000000001"]})).num_rows == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": ("nmae",), "types": {"nmae": pa.string()}}, "has no column `nmae`"),
        ({"types": {"name": pa.int64()}}, "column `name` of"),
        ({"table": "usrs", "owned": False}, "there is no table"),
    ],
)
def test_a_table_that_is_otherwise_is_told(postgres: Database, change: dict, said: str) -> None:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.users (id int PRIMARY KEY, name text)")
    spec = TableSpec("t", "postgres", "users", ("id",), ("name",), {"name": pa.string()}, schema, "at", postgres.address)
    with pytest.raises(RunError, match="MS135") as caught:
        open_store(replace(spec, **change)).ensure()
    assert said in caught.value.diagnostics[0].message


def test_logins_and_addresses(postgres: Database, tmp_path: Path) -> None:
    spec = TableSpec("t", "postgres", "users", ("id",), (), {}, "public", "at", postgres.address)
    with pytest.raises(RunError, match="MS111"):
        open_store(replace(spec, address=postgres.address.to(password="wrong"))).ensure()
    with pytest.raises(TemporaryError, match="MS110"):
        open_store(replace(spec, address=postgres.address.to(port="1"))).ensure()
    with pytest.raises(TemporaryError, match="MS138"):
        open_store(TableSpec("t", "redis", "t", ("k",), place="redis://user:hidden@127.0.0.1:1/0", time_column="at")).ensure()
    (tmp_path / "text.db").write_text("this is no database at all, however long it is" * 10)
    for path in (tmp_path / "text.db", tmp_path / "no" / "where.db"):
        with pytest.raises(MillstreamError, match="MS137"):
            open_store(TableSpec("t", "sqlite", "t", ("k",), place=str(path), time_column="at")).ensure()


def test_a_connection_that_was_cut_is_made_anew(postgres: Database) -> None:
    schema = postgres.schema()
    store = open_store(TableSpec("t", "postgres", "users", ("id",), (), {}, schema, "at", postgres.address))
    store.ensure()
    store.put(pa.table({"id": ["1"]}))
    postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millstream' AND pid <> pg_backend_pid()")
    assert store.get(pa.table({"id": ["1"]})).num_rows == 1


def test_values_of_another_kind_are_told(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, day TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'tomorrow')")
    store = open_store(
        TableSpec("t", "sqlite", "t", ("k",), ("day",), {"day": pa.date32()}, place=str(tmp_path / "t.db"), time_column="at")
    )
    store.ensure()
    with pytest.raises(RunError, match="a value of `day` is not a `date32"):
        store.first(1)
