"""Options that dynamic tables and lookups share: where a table is, and what a worker caches of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.postgres import NAME_BYTES, Address, PostgresOptions
from millstream.lookups.table import CacheSpec
from millstream.plan.components import Problem
from millstream.secrets import Secret, TextOrSecret
from millstream.units import Duration


class TableCache(BaseModel):
    """The cache of each Python worker. Without it every batch queries the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ttl: Duration = Duration("30s")
    """How long an entry is used. Changes and removals are seen after this time at the latest."""
    max_rows: int = Field(100_000, ge=1)
    """The most entries; beyond that, the least recently used ones are dropped."""
    negative: bool = True
    """Whether it also caches that a key has no row."""
    refresh: Duration | None = None
    """How often to poll for rows that changed since the last poll, by `time_column`. Default: never; entries only expire."""

    def spec(self) -> CacheSpec:
        return CacheSpec(self.ttl.seconds, self.max_rows, self.negative, self.refresh.seconds if self.refresh else None)


class TablePlace(PostgresOptions):
    """How to reach a table: Postgres' options, a file, or a URL."""

    path: Path | None = None
    """The file of a SQLite or DuckDB database, relative to the pipeline."""
    url: TextOrSecret = "redis://localhost:6379/0"
    """Redis or Valkey: `redis://HOST:PORT/DATABASE`, or `rediss://` with TLS. User and password are options of their own."""
    namespace: str = Field("", alias="schema")
    """Postgres' schema. Default: `public`."""


def place_of(options: TablePlace, backend: str, directory: Path) -> tuple[Address | None, str]:
    """Address, and file or URL."""
    if backend == "postgres":
        return options.address(), ""
    if backend == "redis":
        return None, _with_login(options)
    return None, str(directory / options.path) if options.path else ""


def place_problems(options: TablePlace, backend: str, names: Mapping[str, Any]) -> list[Problem]:
    """Missing options, and names that no database accepts."""
    found = []
    if backend in {"sqlite", "duckdb"} and options.path is None:
        found.append(Problem("MS007", f"`backend: {backend}` needs `path`, the database's file", "backend"))
    if backend == "postgres" and not options.database:
        found.append(Problem("MS007", "`database` is missing", "backend", "give it here or in `connections: {postgres: {database: …}}`"))
    for field, name in names.items():
        reason = _name_problem(name, backend)
        if reason:
            found.append(Problem("MS134", f"{reason}", field, "choose another name"))
    return found


def _name_problem(name: str, backend: str) -> str:
    if not name:
        return "a name is empty"
    if "\0" in name:
        return f"`{name!r}` contains a NUL byte and is not a valid name"
    if backend == "postgres" and len(name.encode()) > NAME_BYTES:
        return f"`{name}` has {len(name.encode())} bytes, and Postgres truncates names after {NAME_BYTES}"
    return ""


def _with_login(options: TablePlace) -> str:
    from urllib.parse import quote

    url = options.url.reveal() if isinstance(options.url, Secret) else options.url
    if options.password is None or "@" in url:
        return url
    user = options.user.reveal() if isinstance(options.user, Secret) else options.user
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(options.password.reveal(), safe='')}@{rest}"
