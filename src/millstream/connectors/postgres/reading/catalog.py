"""What the server says about a table: its columns, their types, its key, and how its changes are identified.

Names are looked up as values and written into statements in quotes, so that no name can be read as SQL. Names that Postgres would cut off
in silence are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.clients.postgres import NAME_BYTES, Address, PostgresOptions, quoted
from millstream.connectors.postgres.reading.types import arrow_type, selected
from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.changelog import OP, SEQUENCE

if TYPE_CHECKING:
    import psycopg

CHANGES = (OP, SEQUENCE)
"""What a changed row has besides its columns."""
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
class Column:
    """A column as Postgres has it, and the Arrow type that it is read as."""

    name: str
    kind: str
    arrow: pa.DataType
    required: bool
    generated: bool
    number: int
    """Of its type."""

    @property
    def sql(self) -> str:
        return selected(self.name, self.kind, self.arrow)


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is now; `key` identifies its rows, `identity` says how changes name them."""

    oid: int
    schema: str
    name: str
    relkind: str
    replica: str
    rows: float
    columns: tuple[Column, ...]
    """Those that are read."""
    every: tuple[Column, ...]
    primary: tuple[str, ...]
    identity: tuple[str, ...]

    @property
    def sql(self) -> str:
        return quoted(self.schema, self.name)

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.arrow) for column in self.columns])

    @property
    def selection(self) -> str:
        return ", ".join(column.sql for column in self.columns)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.every if column.name == name), None)

    def chosen(self, names: Sequence[str], types: dict[str, pa.DataType]) -> Table:
        """The table with some of its columns, in the given order, and with other types."""
        known = {column.name: column for column in self.every}
        for name in (*names, *types):
            if name not in known:
                message = f"table `{self.schema}.{self.name}` has no column `{name}`"
                raise RunError(Diagnostic("MS120", message, help=nearest(name, known)))
        kept = [known[name] for name in names or known]
        return replace(self, columns=tuple(replace(column, arrow=types.get(column.name, column.arrow)) for column in kept))

    def kept(self, schema: pa.Schema, lenient: bool = False) -> Table:
        """The table with the columns that a source has pinned; what changes add to a row is none of them. When `lenient`, a column that is
        gone is null.
        """
        names = [name for name in schema.names if name not in CHANGES]
        gone = [name for name in names if self.column(name) is None]
        if gone and not lenient:
            message = f"table `{self.schema}.{self.name}` has no column `{gone[0]}` any more"
            help_ = "bring it back, or start anew with `--reset QUERY`; with `cdc` also `on_schema_change: ignore`"
            raise RunError(Diagnostic("MS126", message, help=help_))
        ghosts = [Column(name, "", pa.string(), False, False, 0) for name in gone]
        whole = replace(self, every=(*self.every, *ghosts))
        return whole.chosen(names, {name: schema.field(name).type for name in names})


def reading(options: PostgresOptions, read_only: bool = True) -> Address:
    """The address, with sessions that write values in one way only, and change nothing unless they must."""
    address = options.address()
    more = {"default_transaction_read_only": "on"} if read_only else {}
    return replace(address, settings={**address.settings, **_SESSION, **more})


def split(table: str) -> tuple[str, str]:
    """Schema and name; the schema is empty where none is given. ValueError when it is no name."""
    found = _NAME.fullmatch(table)
    if found is None:
        raise ValueError(f'`{table}` is no table\'s name; it is written as `users`, `public.users` or `public."a.b"`')
    parts = [(found[i] or "").replace('""', '"') or found[i + 1] or "" for i in (1, 3)]
    for part in parts:
        if len(part.encode()) > NAME_BYTES:
            raise ValueError(f"`{part}` is longer than the {NAME_BYTES} bytes that a name can have in Postgres")
    return (parts[0], parts[1]) if parts[1] else ("", parts[0])


def look(connection: psycopg.Connection[Any], table: str) -> Table:
    """The table; an error with a code when it is not there or may not be read."""
    schema, name = split(table)
    found = _found(connection, schema, name)
    if found is None:
        others = connection.execute(
            "SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_|^information_schema$' LIMIT 1000"
        )
        help_ = nearest(table if schema else f"public.{table}", [row[0] for row in others])
        raise RunError(Diagnostic("MS120", f"there is no table `{table}`", help=help_))
    oid, schema, name, relkind, replica, readable, rows = found
    if not readable:
        message = f"table `{schema}.{name}` may not be read by this user"
        raise RunError(Diagnostic("MS120", message, help=f"GRANT SELECT ON {quoted(schema, name)} TO …"))
    columns = [Column(each[0], each[1], arrow_type(each[1]), *each[2:]) for each in connection.execute(_COLUMNS, [oid])]
    primary = tuple(row[0] for row in connection.execute(_KEY.format("i.indisprimary"), [oid]))
    index = tuple(row[0] for row in connection.execute(_KEY.format("i.indisreplident"), [oid]))
    identity = {"d": primary, "f": primary, "i": index}.get(replica, ())
    return Table(oid, schema, name, relkind, replica, rows, tuple(columns), tuple(columns), primary, identity)


def _found(connection: psycopg.Connection[Any], schema: str, name: str) -> Any:
    if schema:
        return connection.execute(_TABLE.format("n.nspname = %s AND c.relname = %s"), [schema, name]).fetchone()
    return connection.execute(_TABLE.format("c.oid = to_regclass(%s)"), [quoted(name)]).fetchone()
