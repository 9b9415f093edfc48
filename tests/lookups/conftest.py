"""Dynamic tables of every backend, each on a real server, edited by a client that is not ours."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import Database
from tests.servers.redis import Server

BACKENDS = ("sqlite", "postgres", "redis")


@dataclass(frozen=True)
class Bench:
    """A place for tables: how a pipeline names it, and how somebody else edits it."""

    backend: str
    connections: str
    options: str
    put: Callable[..., None]
    """put(key, tier): as a stranger does"""
    delete: Callable[[Any], None]

    def table(self, more: str = "columns: {tier: string}, key: user_id") -> str:
        return f"{{type: dynamic_table, backend: {self.backend}, {self.options}, {more}}}"


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.server) for name in BACKENDS[1:])])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    make: Mapping[str, Callable[[], Bench]] = {
        "sqlite": lambda: _sqlite(tmp_path),
        "postgres": lambda: _postgres(request.getfixturevalue("postgres")),
        "redis": lambda: _redis(request.getfixturevalue("redis")),
    }
    return make[request.param]()


@pytest.fixture
def sqlite_bench(tmp_path: Path) -> Bench:
    return _sqlite(tmp_path)


def _sqlite(folder: Path) -> Bench:
    def do(statement: str, *values: Any) -> None:
        with sqlite3.connect(folder / "tables.db", timeout=20) as connection:
            connection.execute(statement, values)
        connection.close()

    def put(key: Any, tier: Any = None) -> None:
        do("CREATE TABLE IF NOT EXISTS watched (user_id TEXT PRIMARY KEY, tier TEXT, updated_at TEXT DEFAULT CURRENT_TIMESTAMP)")
        do("INSERT OR REPLACE INTO watched (user_id, tier) VALUES (?, ?)", str(key), tier)

    return Bench("sqlite", "{}", "path: tables.db, table: watched", put, lambda key: do("DELETE FROM watched WHERE user_id = ?", str(key)))


def _postgres(server: Database) -> Bench:
    schema = server.schema()

    def do(statement: str, *values: Any) -> None:
        with psycopg.connect(server.address.text, autocommit=True) as connection:
            connection.execute(statement, values or None)

    def put(key: Any, tier: Any = None) -> None:
        do(f"CREATE TABLE IF NOT EXISTS {schema}.watched (user_id text PRIMARY KEY, tier text, updated_at timestamptz DEFAULT now())")
        text = f"INSERT INTO {schema}.watched (user_id, tier) VALUES (%s, %s) ON CONFLICT (user_id) DO UPDATE SET tier = excluded.tier"
        do(text + ", updated_at = clock_timestamp()", str(key), tier)

    options = f"schema: {schema}, table: watched"
    delete = f"DELETE FROM {schema}.watched WHERE user_id = %s"
    return Bench("postgres", f"{{postgres: {server.connection}}}", options, put, lambda key: do(delete, str(key)))


def _redis(server: Server) -> Bench:
    name, client = server.name(), server.client()

    def put(key: Any, tier: Any = None) -> None:
        client.hset(f"{name}:{key}", "tier", tier or "")

    def delete(key: Any) -> None:
        client.delete(f"{name}:{key}")

    return Bench("redis", f"{{redis: {{url: '{server.url}'}}}}", f"table: {name}", put, delete)


@pytest.fixture
def millstream_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """`millstream plan` on a text, as a user runs it."""
    monkeypatch.chdir(tmp_path)

    def go(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "p.yaml").write_text(text)
        return subprocess.run([sys.executable, "-m", "millstream.cli", "plan", "p.yaml"], capture_output=True, text=True, check=False)

    return go
