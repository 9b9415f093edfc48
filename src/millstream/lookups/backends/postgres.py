"""A table in Postgres: one statement per Arrow batch, its keys as arrays.

Names are always quoted, values are always parameters. Keys are cast to the catalog's types, so that an index on the key is used. A
connection that the server has closed is reopened once; a failure after that becomes a diagnostic.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from millstream.clients.postgres import Address, connect, quote_name, translate_errors
from millstream.errors import nearest
from millstream.lookups.backends.postgres_types import TYPES, arrow_type, holds, possible, postgres_type
from millstream.lookups.table import TableSpec, missing_column, missing_table, other_type
from millstream.lookups.values import refuse_nul

if TYPE_CHECKING:
    import psycopg

_LOOKBACK = timedelta(seconds=10)
"""Rows have the time at which their transaction began, and become visible when it ends."""
Result = TypeVar("Result")


class Table:
    """A table behind one connection."""

    def __init__(self, spec: TableSpec, schema: pa.Schema | None = None) -> None:
        assert spec.address is not None
        self._spec, self._address = spec, spec.address
        self._connection: psycopg.Connection[Any] | None = None
        self._name = quote_name(spec.namespace, spec.table)
        self._target = _quote_in_statement(spec.namespace, spec.table)
        self._schema: pa.Schema | None = schema
        self._found: dict[str, str] = {}

    def ensure(self) -> pa.Schema:
        if not self._catalog() and self._spec.owned:
            self._do(self._create)
        found = self._catalog()
        if not found:
            raise missing_table(self._spec)
        for name in self._spec.names:
            if name not in found:
                raise missing_column(self._spec, name, nearest(name, found))
        self._schema = pa.schema([pa.field(name, self._type(name)) for name in self._spec.names])
        return self._schema

    def get(self, keys: pa.Table) -> pa.Table:
        kinds = [self._catalog()[name] for name in self._spec.keys]
        columns = [possible(keys.column(index).to_pylist(), kind) for index, kind in enumerate(kinds)]
        if len(kinds) == 1:
            where = f"WHERE {_quote_in_statement(self._spec.keys[0])} = ANY(%s::{kinds[0]}[])"
        else:
            arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
            match = ", ".join(map(_quote_in_statement, self._spec.keys))
            where = f"WHERE ({match}) IN (SELECT * FROM unnest({arrays}))"
        return self._select(where, columns)

    def put(self, rows: pa.Table) -> None:
        refuse_nul(rows, self._spec.name)
        names, found = list(self._spec.names), self._catalog()
        arrays = ", ".join(f"%s::{found[name]}[]" for name in names)
        timed = self._spec.time_column in found and self._spec.time_column not in names
        moment = _quote_in_statement(self._spec.time_column)
        changes = [f"{_quote_in_statement(name)} = excluded.{_quote_in_statement(name)}" for name in self._spec.columns] + (
            [f"{moment} = now()"] if timed else []
        )
        action = f"DO UPDATE SET {', '.join(changes)}" if changes else "DO NOTHING"
        insert = f"INSERT INTO {self._target} ({', '.join(map(_quote_in_statement, names))}) SELECT * FROM unnest({arrays})"
        statement = f"{insert} ON CONFLICT ({', '.join(map(_quote_in_statement, self._spec.keys))}) {action}"
        self._do(lambda connection: connection.execute(statement, [rows[name].to_pylist() for name in names]))

    def delete(self, keys: pa.Table) -> int:
        key = self._spec.keys[0]
        kind = self._catalog()[key]
        statement = f"DELETE FROM {self._target} WHERE {_quote_in_statement(key)} = ANY(%s::{kind}[])"
        values = possible(keys.column(0).to_pylist(), kind)
        return int(self._do(lambda connection: connection.execute(statement, [values])).rowcount)

    def first(self, limit: int) -> pa.Table:
        return self._select(f"ORDER BY {_quote_in_statement(self._spec.keys[0])} LIMIT %s", [limit])

    def changes_since(self, since: Any) -> tuple[pa.Table, Any]:
        assert self._schema is not None
        if self._spec.time_column not in self._catalog():
            raise missing_column(self._spec, self._spec.time_column, "`cache.refresh` needs it; set `time_column`")
        (now,) = self._do(lambda connection: connection.execute("SELECT now() - %s", [_LOOKBACK])).fetchall()[0]
        if since is None:
            return self._schema.empty_table(), now
        return self._select(f"WHERE {_quote_in_statement(self._spec.time_column)} >= %s", [since]), now

    def close(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # it may be closed already
                self._connection.close()
        self._connection = None

    def _select(self, rest: str, parameters: Any) -> pa.Table:
        schema = self._schema or self.ensure()
        chosen = ", ".join(self._read(name) for name in schema.names)
        text = f"SELECT {chosen} FROM {self._target} {rest}"
        rows = self._do(lambda connection: connection.cursor(binary=True).execute(text, parameters).fetchall())
        columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.table(arrays, schema=schema)

    def _read(self, name: str) -> str:
        """The SQL for a column in a form that fits its Arrow type: other types as text, numbers without a scale with one."""
        kind, found = self._type(name), self._catalog()[name]
        if pa.types.is_decimal(kind):
            return f"{_quote_in_statement(name)}::numeric({kind.precision},{kind.scale})"
        return _quote_in_statement(name) if TYPES.get(found) is not None else f"{_quote_in_statement(name)}::text"

    def _type(self, name: str) -> pa.DataType:
        found = self._catalog()[name]
        natural, declared = arrow_type(found), self._spec.types.get(name)
        if declared is None:
            return natural
        if declared != natural and not holds(declared, natural):
            raise other_type(self._spec, name, found, declared)
        return declared

    def _catalog(self) -> dict[str, str]:
        """Column → Postgres type; empty when there is no such table. Read once per connection."""
        if not self._found:
            text = """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
                      WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
            rows = self._do(lambda connection: connection.execute(text, [self._name])).fetchall()
            self._found = dict(rows)
        return self._found

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        spec = self._spec
        with connection.transaction():
            # two pipelines may start at once, and IF NOT EXISTS fails for one of them
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('millstream tables'))")
            schema = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [spec.namespace]).fetchone()
            if spec.namespace and schema is None:
                connection.execute(f"CREATE SCHEMA {quote_name(spec.namespace)}")
            key = f"{quote_name(spec.keys[0])} {postgres_type(spec.types.get(spec.keys[0], pa.string()))} PRIMARY KEY"
            columns = [f"{quote_name(name)} {postgres_type(spec.types[name])}" for name in spec.columns]
            moment = [f"{quote_name(spec.time_column)} timestamptz NOT NULL DEFAULT now()"] if spec.time_column not in spec.names else []
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._name} ({', '.join([key, *columns, *moment])})")

    def _do(self, work: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        kept = self._connection is not None
        try:
            return self._translate_errors(work)
        except Exception as error:
            self.close()
            if kept and _is_disconnect(error):
                return self._translate_errors(work)
            raise

    def _translate_errors(self, work: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        address: Address = self._address
        if self._connection is None:
            self._connection = connect(address, autocommit=True)
        with translate_errors(address):
            return work(self._connection)


def _quote_in_statement(*parts: str) -> str:
    """A quoted name inside a statement with parameters, with percent signs escaped."""
    return quote_name(*parts).replace("%", "%%")


def _is_disconnect(error: Exception) -> bool:
    """Whether the connection was lost between two statements."""
    diagnostics: Any = getattr(error, "diagnostics", ())
    return bool(diagnostics) and diagnostics[0].code in {"MS110", "MS112"}
