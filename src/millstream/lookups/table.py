"""The description of a table, as plain data that is pickled to the workers, and the protocol of its backends.

Whole Arrow tables go in and out. `get` is one query, independent of the number of keys: callers pass distinct keys without nulls, in the
key's type.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from millstream.clients.postgres import Address
from millstream.errors import Diagnostic, RunError

Backend = Literal["memory", "sqlite", "postgres", "redis", "duckdb"]
Verb = Literal["check", "get", "rows"]
"""The functions on a table: is the key there, its row, its rows as a list."""


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """How long, and how much, a worker caches."""

    ttl: float
    max_rows: int
    negative: bool = True
    refresh: float | None = None


@dataclass(frozen=True)
class TableSpec:
    """One table, and where it is."""

    name: str
    """The node's name."""
    backend: Backend
    table: str
    keys: tuple[str, ...]
    columns: tuple[str, ...] = ()
    types: dict[str, pa.DataType] = field(default_factory=dict)
    """Column → type, if declared; else the database's type."""
    namespace: str = ""
    """Postgres' schema."""
    time_column: str = ""
    """The column with the time of the last write."""
    address: Address | None = field(default=None, repr=False)
    place: str = field(default="", repr=False)
    """A file, or a URL."""
    secret: bytes = field(default=b"", repr=False)
    owned: bool = True
    """Whether it is created if missing."""
    cache: CacheSpec | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.keys, *self.columns)

    @property
    def cache_key(self) -> str:
        """Equal for equal tables, in every process and epoch: the key of a worker's cache."""
        types, where = sorted((name, str(kind)) for name, kind in self.types.items()), self.address.text if self.address else self.place
        parts = (self.name, self.backend, self.namespace, self.table, self.names, types, self.time_column, where, self.secret, self.cache)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def display_name(self) -> str:
        """Its name in the database."""
        return f"{self.namespace}.{self.table}" if self.namespace else self.table


class TableStore(Protocol):
    """A table in its backend."""

    def ensure(self) -> pa.Schema:
        """Create the table if it is missing and may be created; returns the types of its keys and columns."""
        ...

    def get(self, keys: pa.Table) -> pa.Table:
        """The rows of these keys that exist."""
        ...

    def put(self, rows: pa.Table) -> None:
        """Write rows and replace those with the same keys."""
        ...

    def delete(self, keys: pa.Table) -> int:
        """Delete rows; returns how many."""
        ...

    def first(self, limit: int) -> pa.Table:
        """The first `limit` rows, by key."""
        ...

    def changes_since(self, since: Any) -> tuple[pa.Table, Any]:
        """Rows written since a time, and the time for the next call. Nothing is read for `None`."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class LookupTableRun(Protocol):
    """The run object of a dynamic table."""

    def resolve(self) -> tuple[TableSpec, pa.Schema]:
        """The table's location and schema, found once in a run."""
        ...


@runtime_checkable
class LocatesTable(Protocol):
    """Options that say where a table is."""

    backend: Backend

    def spec(self, name: str, directory: Path) -> TableSpec: ...


def open_store(spec: TableSpec, schema: pa.Schema | None = None) -> TableStore:
    """A store; `schema` is the result of `ensure`, for processes that do not need to read it again."""
    from importlib import import_module

    made: TableStore = import_module(f"millstream.lookups.backends.{spec.backend}").Table(spec, schema)
    return made


class MissingTableError(RunError):
    """There is no such table, or no database file; a run may create it."""


def missing_table(spec: TableSpec) -> RunError:
    return MissingTableError(
        Diagnostic("MS135", f"`{spec.name}`: there is no table `{spec.display_name}`", help="create it, or correct `table`")
    )


def missing_column(spec: TableSpec, column: str, help_: str) -> RunError:
    return RunError(Diagnostic("MS135", f"`{spec.name}`: table `{spec.display_name}` has no column `{column}`", help=help_))


def other_type(spec: TableSpec, column: str, found: str, wanted: pa.DataType) -> RunError:
    message = f"`{spec.name}`: column `{column}` of `{spec.display_name}` is `{found}`, but the pipeline declares `{wanted}`"
    return RunError(Diagnostic("MS135", message, help="correct the type in the pipeline, or the table"))
