"""Slot and publication: created or found, checked before every read, and advanced when rows are committed.

A publication is created before its slot: decoding uses the catalog as of the change. A table without an identity is refused first, because
publishing it would make Postgres refuse the application's own updates. One advisory lock per slot, in the database, separates the reader
and the process that advances the slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.clients.postgres import Address, first_line, literal, open_connection, quote_name, state_of, translate_error
from millstream.connectors.postgres.read.catalog import TableInfo
from millstream.errors import Diagnostic, RunError, TemporaryError

if TYPE_CHECKING:
    import psycopg

_STATE = """
    SELECT s.slot_name IS NOT NULL, (s.confirmed_flush_lsn - '0/0'::pg_lsn)::int8, s.wal_status, s.plugin, s.database = current_database(),
           s.active_pid, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::int8,
           EXISTS (SELECT FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s AND tablename = %s),
           EXISTS (SELECT FROM pg_publication WHERE pubname = %s)
    FROM (SELECT) one LEFT JOIN pg_replication_slots s ON s.slot_name = %s
"""
_DENIED = "42501"


@dataclass(frozen=True, slots=True)
class Names:
    """A slot, a publication, and their table."""

    slot: str
    publication: str
    schema: str
    table: str

    @property
    def sql(self) -> str:
        return quote_name(self.schema, self.table)


@dataclass(frozen=True, slots=True)
class SlotState:
    """The state of a slot and its publication."""

    exists: bool
    confirmed: int
    """Everything committed before this position is released."""
    status: str
    plugin: str
    here: bool
    user: int | None
    flushed: int
    """The end of the log."""
    published: bool
    publication: bool


def state(connection: psycopg.Connection[Any], names: Names) -> SlotState:
    row = connection.execute(_STATE, [names.publication, names.schema, names.table, names.publication, names.slot]).fetchone()
    assert row is not None
    return SlotState(row[0], row[1] or 0, row[2] or "", row[3] or "", bool(row[4]), *row[5:])


def prepare(address: Address, names: Names, table: TableInfo, create: bool, known: bool) -> SlotState:
    """Slot and publication, ready to be read. A slot that this source has used before (`known`) is never created again: changes would be
    missing.
    """
    with open_connection(address, autocommit=True) as connection:
        level = connection.execute("SHOW wal_level").fetchone()
        if level is None or level[0] != "logical":
            message = f"Postgres at `{address}` writes its log with `wal_level = {level[0] if level else ''}`, and changes need `logical`"
            raise RunError(Diagnostic("MS121", message, help="ALTER SYSTEM SET wal_level = logical; and restart the server"))
        found = state(connection, names)
        if not found.publication and not known:
            statement = f"CREATE PUBLICATION {quote_name(names.publication)} FOR TABLE {table.sql} WITH (publish_via_partition_root = true)"
            _make(connection, address, statement, f"publication `{names.publication}`", create)
        require_published(state(connection, names), names)
        if not found.exists and not known:
            statement = f"SELECT pg_create_logical_replication_slot({literal(names.slot)}, 'pgoutput')"
            _make(connection, address, statement, f"slot `{names.slot}`", create)
        found = state(connection, names)
        require_slot(found, names)
        _probe(connection, address, names)
        return found


def require_published(found: SlotState, names: Names) -> None:
    if not found.publication:
        raise RunError(Diagnostic("MS123", f"publication `{names.publication}` was dropped", help="`--reset QUERY` creates it again"))
    if not found.published:
        message = f"publication `{names.publication}` does not publish table `{names.schema}.{names.table}`"
        help_ = f"ALTER PUBLICATION {quote_name(names.publication)} ADD TABLE {names.sql}"
        raise RunError(Diagnostic("MS123", message, help=help_))


def require_slot(found: SlotState, names: Names, end: int | None = None) -> None:
    """The slot exists, is ours, is valid, and has not passed the end of the spool."""
    help_ = "`--reset QUERY` reads the table again, with its changes following"
    if not found.exists:
        raise RunError(Diagnostic("MS122", f"replication slot `{names.slot}` was dropped, and its changes are lost", help=help_))
    if found.plugin != "pgoutput" or not found.here:
        message = f"replication slot `{names.slot}` is one of another database or plugin (`{found.plugin}`)"
        raise RunError(Diagnostic("MS122", message, help="choose another `slot`"))
    if found.user is not None:
        message = f"replication slot `{names.slot}` is in use by process {found.user} of the server"
        raise TemporaryError(Diagnostic("MS122", message, help="one slot serves one source"))
    if found.status == "lost":
        message = f"Postgres invalidated replication slot `{names.slot}`: it retained more of the log than `max_slot_wal_keep_size` allows"
        help_ = f"SELECT pg_drop_replication_slot({literal(names.slot)}); then `--reset QUERY`"
        raise RunError(Diagnostic("MS122", message, help=help_))
    if end is not None and found.confirmed > end:
        message = f"replication slot `{names.slot}` was advanced or created again by another process: changes are missing"
        raise RunError(Diagnostic("MS122", message, help=help_))


@contextmanager
def slot_lock(address: Address, slot: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that holds the slot's lock."""
    with open_connection(address, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [f"millstream:{slot}"])
        yield connection


def advance(address: Address, names: Names, end: int) -> None:
    """Release everything that was committed before a position in the log."""
    with slot_lock(address, names.slot) as connection:
        found = state(connection, names)
        require_slot(found, names)
        if end > found.confirmed:
            connection.execute("SELECT pg_replication_slot_advance(%s, '0/0'::pg_lsn + %s)", [names.slot, end])


def peek(names: Names, upto: int, limit: int) -> str:
    """SQL for the messages up to a position in the log."""
    options = f"'proto_version', '1', 'publication_names', {literal(quote_name(names.publication))}"
    place = f"'0/0'::pg_lsn + {upto}"
    return f"SELECT data FROM pg_logical_slot_peek_binary_changes({literal(names.slot)}, {place}, {limit}, {options})"


def _probe(connection: psycopg.Connection[Any], address: Address, names: Names) -> None:
    """Whether the slot may be read at all."""
    try:
        connection.execute(peek(names, 1, 1))
    except Exception as error:
        if state_of(error) == _DENIED:
            raise RunError(_permission_denied(address, "read a replication slot", error)) from None
        raise translate_error(error, address) from error


def _make(connection: psycopg.Connection[Any], address: Address, statement: str, what: str, allowed: bool) -> None:
    if not allowed:
        raise RunError(Diagnostic("MS121", f"there is no {what}, and `create` is false", help=statement))
    try:
        connection.execute(statement)
    except Exception as error:
        if state_of(error) == _DENIED:
            raise RunError(_permission_denied(address, f"make {what}", error, statement)) from None
        raise translate_error(error, address) from error


def _permission_denied(address: Address, what: str, error: Exception, statement: str = "") -> Diagnostic:
    help_ = f"ask an administrator to run: {statement}" if statement else "ALTER ROLE … REPLICATION"
    return Diagnostic("MS121", f"this user may not {what} in Postgres at `{address}`: {first_line(error)}", help=help_)
