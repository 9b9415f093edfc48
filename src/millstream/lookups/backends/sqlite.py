"""A table in a SQLite file: keys are passed as one JSON array, which SQLite reads as a table, so that a batch is one statement.

SQLite's columns are not strictly typed: values are converted to the declared types when they are read. Dates, times and decimals are stored
as text. The file is in WAL mode, so that other processes can write while workers read.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.errors import Diagnostic, RunError, TemporaryError, nearest
from millstream.lookups.table import MissingTableError, TableSpec, missing_column, missing_table
from millstream.lookups.values import parse_values, plain, refuse_nul

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
_BUSY_SECONDS = 20


class Table:
    """A table behind one connection."""

    def __init__(self, spec: TableSpec, schema: pa.Schema | None = None) -> None:
        self._spec, self._schema, self._name = spec, schema, _quote(spec.table)
        self._connection: sqlite3.Connection | None = None

    def ensure(self) -> pa.Schema:
        found = self._catalog()
        if not found and self._spec.owned:
            self._create()
            found = self._catalog()
        if not found:
            raise missing_table(self._spec)
        for name in self._spec.names:
            if name not in found:
                raise missing_column(self._spec, name, nearest(name, found))
        self._schema = pa.schema([pa.field(name, self._spec.types.get(name, _arrow(found[name]))) for name in self._spec.names])
        return self._schema

    def get(self, keys: pa.Table) -> pa.Table:
        if len(self._spec.keys) == 1:
            where = f"WHERE {_quote(self._spec.keys[0])} IN (SELECT value FROM json_each(?))"
            return self._select(where, [json.dumps(plain(keys.column(0)))])
        match = ", ".join(map(_quote, self._spec.keys))
        parts = ", ".join(f"json_extract(value, '$[{index}]')" for index in range(len(self._spec.keys)))
        rows = [list(row) for row in zip(*map(plain, keys.columns), strict=True)]
        return self._select(f"WHERE ({match}) IN (SELECT {parts} FROM json_each(?))", [json.dumps(rows)])

    def put(self, rows: pa.Table) -> None:
        refuse_nul(rows, self._spec.name)
        names, timed = list(self._spec.names), self._has_time_column()
        moment = [_quote(self._spec.time_column)] if timed else []
        changes = [f"{_quote(name)} = excluded.{_quote(name)}" for name in self._spec.columns] + [f"{each} = {_NOW}" for each in moment]
        action = f"DO UPDATE SET {', '.join(changes)}" if changes else "DO NOTHING"
        columns = ", ".join([*map(_quote, names), *moment])
        marks = ", ".join(["?"] * len(names) + [_NOW] * len(moment))
        text = f"INSERT INTO {self._name} ({columns}) VALUES ({marks}) ON CONFLICT ({_quote(self._spec.keys[0])}) {action}"
        with self._translate_errors() as connection, connection:
            connection.executemany(text, zip(*(plain(rows[name]) for name in names), strict=True))

    def delete(self, keys: pa.Table) -> int:
        text = f"DELETE FROM {self._name} WHERE {_quote(self._spec.keys[0])} IN (SELECT value FROM json_each(?))"
        with self._translate_errors() as connection, connection:
            return int(connection.execute(text, [json.dumps(plain(keys.column(0)))]).rowcount)

    def first(self, limit: int) -> pa.Table:
        return self._select(f"ORDER BY {_quote(self._spec.keys[0])} LIMIT ?", [limit])

    def changes_since(self, since: Any) -> tuple[pa.Table, Any]:
        if not self._has_time_column() and self._spec.time_column not in self._spec.names:
            raise missing_column(self._spec, self._spec.time_column, "`cache.refresh` needs it; set `time_column`")
        with self._translate_errors() as connection:
            now = connection.execute("SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-10 seconds')").fetchone()[0]
        if since is None:
            return (self._schema or self.ensure()).empty_table(), now
        return self._select(f"WHERE julianday({_quote(self._spec.time_column)}) >= julianday(?)", [since]), now

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _select(self, rest: str, parameters: Any) -> pa.Table:
        schema = self._schema or self.ensure()
        text = f"SELECT {', '.join(map(_quote, schema.names))} FROM {self._name} {rest}"
        with self._translate_errors() as connection:
            rows = connection.execute(text, parameters).fetchall()
        columns: Any = zip(*rows, strict=True) if rows else [[] for _ in schema]
        arrays = [
            parse_values(list(values), field.type, self._spec.name, field.name) for values, field in zip(columns, schema, strict=True)
        ]
        return pa.table(arrays, schema=schema)

    def _has_time_column(self) -> bool:
        return self._spec.time_column in self._catalog() and self._spec.time_column not in self._spec.names

    def _catalog(self) -> dict[str, str]:
        """Column → declared type. Checked first, because SQLite treats an unknown quoted name as text."""
        with self._translate_errors() as connection:
            rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", [self._spec.table]).fetchall()
        return {name: str(kind).upper() for name, kind in rows}

    def _create(self) -> None:
        spec = self._spec
        key = f"{_quote(spec.keys[0])} {_type_name(spec.types.get(spec.keys[0], pa.string()))} NOT NULL PRIMARY KEY"
        columns = [f"{_quote(name)} {_type_name(spec.types[name])}" for name in spec.columns]
        moment = [f"{_quote(spec.time_column)} TEXT NOT NULL DEFAULT ({_NOW})"] if spec.time_column not in spec.names else []
        with self._translate_errors() as connection, connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._name} ({', '.join([key, *columns, *moment])})")

    @contextmanager
    def _translate_errors(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._connect()
        except sqlite3.Error as error:
            self.close()
            busy = "locked" in str(error) or "busy" in str(error)
            kind = TemporaryError if busy else RunError
            raise kind(Diagnostic("MS137", f"SQLite refuses `{self._spec.place}`: {error}", help=_help(error))) from error

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            path = Path(self._spec.place)
            if not self._spec.owned and not path.is_file():
                raise MissingTableError(Diagnostic("MS137", f"`{self._spec.name}`: there is no file `{path}`", help="correct `path`"))
            if not path.parent.is_dir():
                raise RunError(Diagnostic("MS137", f"`{self._spec.name}`: there is no directory `{path.parent}`", help="create it first"))
            # one thread at a time uses a connection, but not always the thread that opened it
            target = path if self._spec.owned else f"{path.absolute().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(target, timeout=_BUSY_SECONDS, check_same_thread=False, uri=not self._spec.owned)
            if self._spec.owned:
                self._connection.execute("PRAGMA journal_mode=WAL")
        return self._connection


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    return "BOOLEAN" if pa.types.is_boolean(kind) else "BLOB" if pa.types.is_binary(kind) else "TEXT"


def _arrow(declared: str) -> pa.DataType:
    """By SQLite's affinity rules; an unknown declaration is read as text."""
    if "INT" in declared:
        return pa.int64()
    if any(word in declared for word in ("REAL", "FLOA", "DOUB")):
        return pa.float64()
    return pa.bool_() if "BOOL" in declared else pa.binary() if "BLOB" in declared else pa.string()


def _help(error: sqlite3.Error) -> str:
    if "not a database" in str(error):
        return "correct `path`: the file holds something else"
    return "another writer holds the file" if "locked" in str(error) else ""
