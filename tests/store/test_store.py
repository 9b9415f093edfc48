"""Named values: apart by namespace, all or nothing, in SQLite and in Postgres alike."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers.postgres import Database

from millstream.errors import RunError
from millstream.store.postgres import PostgresStore
from millstream.store.protocol import Namespace, Store
from millstream.store.sqlite import SqliteStore

pytestmark = pytest.mark.server

PIPELINE = """
name: kept
connections: {{postgres: {connection}}}
sources: {{m: {{type: memory, rows: [{{id: 1}}]}}}}
sinks: {{out: {{type: print, from: m}}}}
settings: {{checkpoint: ck, store: {store}}}
"""


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        opened: Store = SqliteStore(tmp_path / "deep" / "store.db")
    else:
        database: Database = request.getfixturevalue("postgres")
        opened = PostgresStore(database.address, database.schema(), "p")
    yield opened
    opened.close()


def test_values_are_put_found_listed_and_removed(store: Store) -> None:
    mine, other = Namespace(store, "mine"), Namespace(store, "other")
    mine.put("a", {"deep": [1, None, "é"]})
    mine.put_many({"b/1": 1, "b/2": 2, "a": "new"})
    other.put("a", 7)
    assert (mine.get("a"), other.get("a"), mine.get("nothing")) == ("new", 7, None)
    assert [(entry.key, entry.value) for entry in mine.list("b/")] == [("b/1", 1), ("b/2", 2)]
    assert [entry.namespace for entry in store.list()] == ["mine", "mine", "mine", "other"]
    assert store.list()[0].updated_at.endswith("Z")
    assert (mine.delete("a"), mine.delete("a")) == (True, False)
    assert store.delete("mine") == 2
    assert [entry.namespace for entry in store.list()] == ["other"]


def test_names_are_names_whatever_they_hold(store: Store) -> None:
    evil = "x'; DROP TABLE store; -- %s \" _"
    Namespace(store, evil).put(evil, evil)
    assert Namespace(store, evil).get(evil) == evil
    assert store.list(prefix="%") == []


def test_many_are_put_or_none(store: Store) -> None:
    with pytest.raises(TypeError):
        Namespace(store, "n").put_many({"a": 1, "b": object()})
    assert store.list() == []
    with pytest.raises((UnicodeEncodeError, RunError)):  # the second is refused by the database itself
        store.put_many("n", {"a": 1, "b" if isinstance(store, PostgresStore) else "\ud800": "\0"})
    assert store.list() == []


def test_threads_share_it(store: Store) -> None:
    threads = [threading.Thread(target=Namespace(store, "n").put_many, args=({f"{n}": n},)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.list("n")) == 8


def test_a_connection_that_broke_is_made_anew(postgres: Database) -> None:
    store = PostgresStore(postgres.address, postgres.schema(), "p")
    Namespace(store, "n").put("a", 1)
    postgres.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'millstream' AND state = 'idle'")
    assert Namespace(store, "n").get("a") == 1


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("something else, and long enough to be looked at as a database" * 20)
    with pytest.raises(RunError, match="cannot be opened"):
        SqliteStore(tmp_path / "store.db").list()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_the_command_line_shows_and_removes(tmp_path: Path, postgres: Database, kind: str) -> None:
    schema = postgres.schema()
    (tmp_path / "p.yaml").write_text(PIPELINE.format(connection=postgres.connection, store=f"{{backend: {kind}, schema: {schema}}}"))
    opened = SqliteStore(tmp_path / "ck/_millstream/store.db") if kind == "sqlite" else PostgresStore(postgres.address, schema, "kept")
    opened.put_many("plugin", {"position": 3})
    opened.close()

    def millstream(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "millstream.cli", "store", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert json.loads(millstream("list", "p.yaml").stdout)["value"] == 3
    assert millstream("get", "p.yaml", "plugin", "position").stdout == "3\n"
    assert "store list" in millstream("get", "p.yaml", "plugin", "positoin").stderr
    assert millstream("rm", "p.yaml", "plugin", "position").returncode == 0
    assert millstream("rm", "p.yaml", "plugin", "position").returncode == 1
    assert millstream("list", "p.yaml").stdout == ""
