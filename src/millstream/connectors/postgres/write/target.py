"""The target table: found in the catalog, created if missing, extended by missing columns.

This happens before the first row is staged, in a separate transaction: an empty table or an empty column is not a partial epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from millstream.clients.postgres import quote_name
from millstream.connectors.postgres.write.columns import StagedColumn
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
    """The table that a sink needs."""

    schema: str
    table: str
    key: tuple[str, ...]
    create: bool
    evolve: Evolve
    ordered_by: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    """Extra columns: name → type."""

    @property
    def name(self) -> str:
        return quote_name(self.schema, self.table)

    @property
    def display_name(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class TableTarget:
    """An existing table."""

    wanted: Wanted
    columns: Mapping[str, str]
    """Name → type, from the catalog."""

    @property
    def name(self) -> str:
        return self.wanted.name


def prepare_table(connection: psycopg.Connection[Any], wanted: Wanted, columns: tuple[StagedColumn, ...], held: bool) -> TableTarget:
    """The table, with each of the columns. `held`: epochs were written to it before, so it must exist."""
    connection.execute(
        "SELECT pg_advisory_xact_lock(hashtext('millstream'))"
    )  # otherwise two transactions that create the same object fail
    present = _columns(connection, wanted)
    if not present:
        _require_creatable(connection, wanted, held)
        _create(connection, wanted, columns)
        present = _columns(connection, wanted)
    _require_key(connection, wanted, present)
    missing = [column for column in columns if column.name not in present]
    if missing and wanted.evolve == "fail":
        message = f"the table `{wanted.display_name}` has no column `{missing[0].name}`"
        help_ = f"{nearest(missing[0].name, present)}; `evolve: add_columns` adds it, `evolve: ignore` leaves it out"
        raise RunError(Diagnostic("MS114", message, help=help_))
    if missing and wanted.evolve == "add_columns":
        additions = ", ".join(f"ADD COLUMN IF NOT EXISTS {quote_name(column.name)} {column.declared}" for column in missing)
        connection.execute(f"ALTER TABLE {wanted.name} {additions}")
        present = _columns(connection, wanted)
    return TableTarget(wanted, present)


def _columns(connection: psycopg.Connection[Any], wanted: Wanted) -> dict[str, str]:
    return dict(connection.execute(_COLUMNS, [wanted.name]).fetchall())


def _require_creatable(connection: psycopg.Connection[Any], wanted: Wanted, held: bool) -> None:
    if held:
        message = f"the table `{wanted.display_name}` was dropped, but earlier epochs were written to it"
        help_ = "restore it, or start anew with `--reset`: the ledger in the database belongs to the checkpoint"
        raise RunError(Diagnostic("MS115", message, help=help_))
    if not wanted.create:
        near = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [wanted.schema]).fetchall()
        message = f"there is no table `{wanted.display_name}`"
        help_ = nearest(wanted.table, [name for (name,) in near]) or "create it, or set `create: true`"
        raise RunError(Diagnostic("MS114", message, help=help_))


def _create(connection: psycopg.Connection[Any], wanted: Wanted, columns: tuple[StagedColumn, ...]) -> None:
    if not _schema_exists(connection, wanted):  # `IF NOT EXISTS` would require the permission to create one
        connection.execute(f"CREATE SCHEMA {quote_name(wanted.schema)}")
    parts = [f"{quote_name(column.name)} {column.declared}" for column in columns]
    parts += [f"{quote_name(name)} {kind}" for name, kind in wanted.extra.items()]
    parts += [f"PRIMARY KEY ({join_names(wanted.key)})"] if wanted.key else []
    connection.execute(f"CREATE TABLE IF NOT EXISTS {wanted.name} ({', '.join(parts)})")
    if wanted.ordered_by:
        connection.execute(f"CREATE INDEX ON {wanted.name} ({join_names(wanted.ordered_by)})")


def _schema_exists(connection: psycopg.Connection[Any], wanted: Wanted) -> bool:
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [wanted.schema]).fetchone() is not None


def _require_key(connection: psycopg.Connection[Any], wanted: Wanted, present: Mapping[str, str]) -> None:
    for name in wanted.key:
        if name not in present:
            message = f"the table `{wanted.display_name}` has no column `{name}` for the primary key"
            raise RunError(Diagnostic("MS114", message, help=nearest(name, present)))
    unique = [set(names) for (names,) in connection.execute(_UNIQUE, [wanted.name])]
    if wanted.key and set(wanted.key) not in unique:
        message = f"the table `{wanted.display_name}` has no unique index on {', '.join(f'`{name}`' for name in wanted.key)}"
        raise RunError(Diagnostic("MS114", message, help=f"CREATE UNIQUE INDEX ON {wanted.name} ({join_names(wanted.key)})"))


def join_names(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(quote_name(name) for name in names)
