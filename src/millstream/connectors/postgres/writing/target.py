"""The table that rows end up in: looked up in the catalog, made when it is not there, given the columns that it lacks.

All of that happens before the first row is staged, in a transaction of its own: an empty table or an empty column is no half-written epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from millstream.clients.postgres import quoted
from millstream.connectors.postgres.writing.columns import Column
from millstream.errors import Diagnostic, RunError, nearest

if TYPE_CHECKING:
    import psycopg

Evolve = Literal["add_columns", "fail", "ignore"]
_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum
"""
_UNIQUE = """
    SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)
    WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid
"""


@dataclass(frozen=True)
class Wanted:
    """What a sink asks of its table."""

    schema: str
    table: str
    key: tuple[str, ...]
    create: bool
    evolve: Evolve
    ordered_by: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    """Columns of our own: name → type."""

    @property
    def name(self) -> str:
        return quoted(self.schema, self.table)

    @property
    def shown(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class Target:
    """A table that is there."""

    wanted: Wanted
    columns: Mapping[str, str]
    """Name → type, as the catalog has them."""

    @property
    def name(self) -> str:
        return self.wanted.name


def fitting(connection: psycopg.Connection[Any], wanted: Wanted, columns: tuple[Column, ...], held: bool) -> Target:
    """The table, with a place for each of the columns. `held`: epochs were written to it before, so that it must be there."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('millstream'))")  # two that make the same thing at once fail otherwise
    present = _columns(connection, wanted)
    if not present:
        _require_creatable(connection, wanted, held)
        _create(connection, wanted, columns)
        present = _columns(connection, wanted)
    _require_key(connection, wanted, present)
    missing = [column for column in columns if column.name not in present]
    if missing and wanted.evolve == "fail":
        message = f"the table `{wanted.shown}` has no column `{missing[0].name}`"
        help_ = f"{nearest(missing[0].name, present)}; `evolve: add_columns` adds it, `evolve: ignore` leaves it out"
        raise RunError(Diagnostic("MS114", message, help=help_))
    if missing and wanted.evolve == "add_columns":
        additions = ", ".join(f"ADD COLUMN IF NOT EXISTS {quoted(column.name)} {column.declared}" for column in missing)
        connection.execute(f"ALTER TABLE {wanted.name} {additions}")
        present = _columns(connection, wanted)
    return Target(wanted, present)


def _columns(connection: psycopg.Connection[Any], wanted: Wanted) -> dict[str, str]:
    return dict(connection.execute(_COLUMNS, [wanted.name]).fetchall())


def _require_creatable(connection: psycopg.Connection[Any], wanted: Wanted, held: bool) -> None:
    if held:
        message = f"the table `{wanted.shown}` is gone, and earlier epochs were written to it"
        help_ = "restore it, or start anew with `--reset`: the ledger in the database goes by the checkpoint"
        raise RunError(Diagnostic("MS115", message, help=help_))
    if not wanted.create:
        near = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [wanted.schema]).fetchall()
        message = f"there is no table `{wanted.shown}`"
        help_ = nearest(wanted.table, [name for (name,) in near]) or "create it, or set `create: true`"
        raise RunError(Diagnostic("MS114", message, help=help_))


def _create(connection: psycopg.Connection[Any], wanted: Wanted, columns: tuple[Column, ...]) -> None:
    if not _schema_exists(connection, wanted):  # `IF NOT EXISTS` would ask for the right to make one
        connection.execute(f"CREATE SCHEMA {quoted(wanted.schema)}")
    parts = [f"{quoted(column.name)} {column.declared}" for column in columns]
    parts += [f"{quoted(name)} {kind}" for name, kind in wanted.extra.items()]
    parts += [f"PRIMARY KEY ({listed(wanted.key)})"] if wanted.key else []
    connection.execute(f"CREATE TABLE IF NOT EXISTS {wanted.name} ({', '.join(parts)})")
    if wanted.ordered_by:
        connection.execute(f"CREATE INDEX ON {wanted.name} ({listed(wanted.ordered_by)})")


def _schema_exists(connection: psycopg.Connection[Any], wanted: Wanted) -> bool:
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [wanted.schema]).fetchone() is not None


def _require_key(connection: psycopg.Connection[Any], wanted: Wanted, present: Mapping[str, str]) -> None:
    for name in wanted.key:
        if name not in present:
            message = f"the table `{wanted.shown}` has no column `{name}` for the primary key"
            raise RunError(Diagnostic("MS114", message, help=nearest(name, present)))
    unique = [set(names) for (names,) in connection.execute(_UNIQUE, [wanted.name])]
    if wanted.key and set(wanted.key) not in unique:
        message = f"the table `{wanted.shown}` has no unique index on {', '.join(f'`{name}`' for name in wanted.key)}"
        raise RunError(Diagnostic("MS114", message, help=f"CREATE UNIQUE INDEX ON {wanted.name} ({listed(wanted.key)})"))


def listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(quoted(name) for name in names)
