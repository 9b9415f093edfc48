"""Reads a table's description from the server: its columns, their types, its key, and its replica identity.

Names are looked up as values and quoted in statements, so that no name can be read as SQL. Names that Postgres would silently truncate are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.clients.postgres import NAME_BYTES, Address, PostgresOptions, quote_name
from millstream.connectors.postgres.read.types import arrow_type, select_sql
from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.changelog import OP, SEQUENCE

if TYPE_CHECKING:
    import psycopg

CHANGES = (OP, SEQUENCE)
"""The extra columns of a changed row."""
_NAME = re.compile(r'(?:"((?:[^"]|"")+)"|([^."]+))(?:\.(?:"((?:[^"]|"")+)"|([^."]+)))?')
_SESSION = {
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
}
_TABLE = """
    SELECT c.oid::int8, n.nspname, c.relname, c.relkind::text, c.relreplident::text, has_table_privilege(c.oid, 'SELECT'), c.reltuples
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {}
"""
_COLUMNS = """
    SELECT a.attname, format_type(coalesce(b.oid, t.oid), CASE WHEN b.oid IS NULL THEN a.atttypmod ELSE t.typtypmod END),
           a.attnotnull, a.attgenerated <> '', a.atttypid::int8
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
    SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = %s AND {} AND k.place <= i.indnkeyatts ORDER BY k.place
"""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column in Postgres, and its Arrow type."""

    name: str
    kind: str
    arrow: pa.DataType
    required: bool
    generated: bool
    number: int
    """The id of its type."""

    @property
    def sql(self) -> str:
        return select_sql(self.name, self.kind, self.arrow)


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table's current description; `key` identifies its rows, `identity` says how changes identify them."""

    oid: int
    schema: str
    name: str
    relkind: str
    replica: str
    rows: float
    columns: tuple[SourceColumn, ...]
    """The columns that are read."""
    every: tuple[SourceColumn, ...]
    primary: tuple[str, ...]
    identity: tuple[str, ...]

    @property
    def sql(self) -> str:
        return quote_name(self.schema, self.name)

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.arrow) for column in self.columns])

    @property
    def selection(self) -> str:
        return ", ".join(column.sql for column in self.columns)

    def column(self, name: str) -> SourceColumn | None:
        return next((column for column in self.every if column.name == name), None)

    def with_columns(self, names: Sequence[str], types: dict[str, pa.DataType]) -> TableInfo:
        """The table with some of its columns, in the given order, and with other types."""
        known = {column.name: column for column in self.every}
        for name in (*names, *types):
            if name not in known:
                message = f"table `{self.schema}.{self.name}` has no column `{name}`"
                raise RunError(Diagnostic("MS120", message, help=nearest(name, known)))
        kept = [known[name] for name in names or known]
        return replace(self, columns=tuple(replace(column, arrow=types.get(column.name, column.arrow)) for column in kept))

    def with_pinned_columns(self, schema: pa.Schema, lenient: bool = False) -> TableInfo:
        """The table with the columns that a source has pinned, without those that changes add. When `lenient`, a missing column is null."""
        names = [name for name in schema.names if name not in CHANGES]
        gone = [name for name in names if self.column(name) is None]
        if gone and not lenient:
            message = f"table `{self.schema}.{self.name}` has no column `{gone[0]}` any more"
            help_ = "restore it, or start anew with `--reset QUERY`; with `cdc` also `on_schema_change: ignore`"
            raise RunError(Diagnostic("MS126", message, help=help_))
        ghosts = [SourceColumn(name, "", pa.string(), False, False, 0) for name in gone]
        whole = replace(self, every=(*self.every, *ghosts))
        return whole.with_columns(names, {name: schema.field(name).type for name in names})


def reading_address(options: PostgresOptions, read_only: bool = True) -> Address:
    """The address, with sessions that format values in one way, and that are read-only if possible."""
    address = options.address()
    more = {"default_transaction_read_only": "on"} if read_only else {}
    return replace(address, settings={**address.settings, **_SESSION, **more})


def split_name(table: str) -> tuple[str, str]:
    """Schema and name; the schema is empty where none is given. ValueError when it is not a name."""
    found = _NAME.fullmatch(table)
    if found is None:
        raise ValueError(f'`{table}` is not a table name; write `users`, `public.users` or `public."a.b"`')
    parts = [(found[i] or "").replace('""', '"') or found[i + 1] or "" for i in (1, 3)]
    for part in parts:
        if len(part.encode()) > NAME_BYTES:
            raise ValueError(f"`{part}` is longer than the {NAME_BYTES} bytes that a name can have in Postgres")
    return (parts[0], parts[1]) if parts[1] else ("", parts[0])


def look(connection: psycopg.Connection[Any], table: str) -> TableInfo:
    """The table; an error with a code when it does not exist or cannot be read."""
    schema, name = split_name(table)
    found = _find(connection, schema, name)
    if found is None:
        others = connection.execute(
            "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_|^information_schema$' LIMIT 1000"
        )
        help_ = nearest(table if schema else f"public.{table}", [row[0] for row in others])
        raise RunError(Diagnostic("MS120", f"there is no table `{table}`", help=help_))
    oid, schema, name, relkind, replica, readable, rows = found
    if not readable:
        message = f"table `{schema}.{name}` cannot be read by this user"
        raise RunError(Diagnostic("MS120", message, help=f"GRANT SELECT ON {quote_name(schema, name)} TO …"))
    columns = [SourceColumn(each[0], each[1], arrow_type(each[1]), *each[2:]) for each in connection.execute(_COLUMNS, [oid])]
    primary = tuple(row[0] for row in connection.execute(_KEY.format("i.indisprimary"), [oid]))
    index = tuple(row[0] for row in connection.execute(_KEY.format("i.indisreplident"), [oid]))
    identity = {"d": primary, "f": primary, "i": index}.get(replica, ())
    return TableInfo(oid, schema, name, relkind, replica, rows, tuple(columns), tuple(columns), primary, identity)


def _find(connection: psycopg.Connection[Any], schema: str, name: str) -> Any:
    if schema:
        return connection.execute(_TABLE.format("n.nspname = %s AND c.relname = %s"), [schema, name]).fetchone()
    return connection.execute(_TABLE.format("c.oid = to_regclass(%s)"), [quote_name(name)]).fetchone()
