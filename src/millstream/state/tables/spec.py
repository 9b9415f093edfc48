"""What a table is, as plain data that travels to the workers, and what every backend can do with one.

Whole Arrow tables go in and out. `get` is one question to the server however many keys it has: the callers hand it distinct keys, none
null, already of the key's own type.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pyarrow as pa

from millstream.clients.postgres import Address
from millstream.errors import Diagnostic, RunError

Backend = Literal["memory", "sqlite", "postgres", "redis", "duckdb"]
Verb = Literal["check", "get", "rows"]
"""What SQL asks a table: is it there, its row, its rows as a list."""


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """How long, and how much, a worker remembers."""

    ttl: float
    max_rows: int
    negative: bool = True
    refresh: float | None = None


@dataclass(frozen=True)
class TableSpec:
    """One table, and where it is."""

    name: str
    """What the pipeline calls it."""
    backend: Backend
    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Column → type, where it is declared; else what the database says."""
    namespace: str = ""
    """Postgres' schema."""
    time_column: str = ""
    """When a row was written last."""
    address: Address | None = field(default=None, repr=False)
    place: str = field(default="", repr=False)
    """A file, or a URL."""
    secret: bytes = field(default=b"", repr=False)
    owned: bool = True
    """Whether it is made when it is missing."""
    cache: CacheSpec | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.keys, *self.columns)

    @property
    def identity(self) -> str:
        """Equal for equal tables, in every process and epoch: what a worker remembers is found under it."""
        types, where = sorted((name, str(kind)) for name, kind in self.types.items()), self.address.text if self.address else self.place
        parts = (self.name, self.backend, self.namespace, self.table, self.names, types, self.time_column, where, self.secret, self.cache)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def shown(self) -> str:
        """Its name in the database."""
        return f"{self.namespace}.{self.table}" if self.namespace else self.table


class Store(Protocol):
    """A table in its backend."""

    def settle(self) -> pa.Schema:
        """Make the table where it is missing and ours to make; the types of its keys and columns."""
        ...

    def get(self, keys: pa.Table) -> pa.Table:
        """The rows of these keys, as far as there are any."""
        ...

    def put(self, rows: pa.Table) -> None:
        """Write rows, in place of those with the same keys."""
        ...

    def delete(self, keys: pa.Table) -> int:
        """How many rows have gone."""
        ...

    def first(self, limit: int) -> pa.Table:
        """So many rows, by key."""
        ...

    def changed(self, since: Any) -> tuple[pa.Table, Any]:
        """Rows written since a moment, and the moment to ask for the next time. Nothing is read for the moment `None`."""
        ...

    def close(self) -> None: ...


def open_store(spec: TableSpec, schema: pa.Schema | None = None) -> Store:
    """A store; `schema` is what `settle` found, for processes that need not ask again."""
    from importlib import import_module

    made: Store = import_module(f"millstream.state.tables.{_MODULES[spec.backend]}").Table(spec, schema)
    return made


_MODULES: dict[Backend, str] = {
    "memory": "memory",
    "sqlite": "sqlite",
    "postgres": "postgres",
    "redis": "redisstore",
    "duckdb": "duckstore",
}


class MissingTableError(RunError):
    """There is no such table, or not even its database file; a run may make it."""


def missing_table(spec: TableSpec) -> RunError:
    return MissingTableError(Diagnostic("MS135", f"`{spec.name}`: there is no table `{spec.shown}`", help="create it, or correct `table`"))


def missing_column(spec: TableSpec, column: str, help_: str) -> RunError:
    return RunError(Diagnostic("MS135", f"`{spec.name}`: table `{spec.shown}` has no column `{column}`", help=help_))


def other_type(spec: TableSpec, column: str, found: str, wanted: pa.DataType) -> RunError:
    message = f"`{spec.name}`: column `{column}` of `{spec.shown}` is `{found}`, and the pipeline says `{wanted}`"
    return RunError(Diagnostic("MS135", message, help="correct the type in the pipeline, or the table"))
