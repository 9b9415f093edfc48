"""The ledger: the epoch of each query that a database holds.

The transaction that writes the rows writes it too: both are committed or neither. Locking its row serialises writers: a writer that was
considered dead finds its epoch committed, and skips it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.clients.postgres import quote_name
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch, LedgerEntry, rolled_back

if TYPE_CHECKING:
    import psycopg

_TABLE = "ledger"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger's table, in our own schema."""

    schema: str
    pipeline: str = ""
    """Stored with the entries, for people."""

    @property
    def name(self) -> str:
        return quote_name(self.schema, _TABLE)

    @property
    def _table(self) -> str:
        """The name in a statement with parameters."""
        return self.name.replace("%", "%%")

    def create(self, connection: psycopg.Connection[Any]) -> None:
        """Create the schema and the table if they are missing."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('millstream'))")
        if self._exists(connection):
            return
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema]).fetchone() is None:
            connection.execute(f"CREATE SCHEMA {quote_name(self.schema)}")
        columns = "query text, sink text, epoch bigint NOT NULL, digest text NOT NULL, pipeline text, written_at timestamptz DEFAULT now()"
        connection.execute(f"CREATE TABLE {self.name} ({columns}, PRIMARY KEY (query, sink))")

    def _exists(self, connection: psycopg.Connection[Any]) -> bool:
        return connection.execute("SELECT to_regclass(%s)", [self.name]).fetchone() != (None,)

    def read(self, connection: psycopg.Connection[Any], epoch: Epoch) -> LedgerEntry | None:
        if not self._exists(connection):
            return None
        query = f"SELECT epoch, digest FROM {self._table} WHERE query = %s AND sink = %s"
        found = connection.execute(query, [epoch.query, epoch.sink]).fetchone()
        return LedgerEntry(*found) if found and found[0] >= 0 else None

    def claim(self, connection: psycopg.Connection[Any], epoch: Epoch) -> bool:
        """Lock the row; returns whether the epoch must still be written."""
        row = [epoch.query, epoch.sink, self.pipeline]
        connection.execute(f"INSERT INTO {self._table} VALUES (%s, %s, -1, '', %s) ON CONFLICT DO NOTHING", row)
        query = f"SELECT epoch, digest FROM {self._table} WHERE query = %s AND sink = %s FOR UPDATE"
        found = connection.execute(query, row[:2]).fetchone()
        assert found is not None
        held = LedgerEntry(*found)
        if held.epoch < epoch.number:
            _require_not_less(held, epoch)
            return True
        if held == LedgerEntry(epoch.number, epoch.digest):
            return False
        message = f"sink `{epoch.sink}` already holds epoch {held.epoch}, but this run is at epoch {epoch.number} of another history"
        detail = "a copy of the pipeline may run on a copy of the checkpoint; nothing was written"
        raise RunError(Diagnostic("MS055", message, detail=detail))

    def write(self, connection: psycopg.Connection[Any], epoch: Epoch) -> None:
        query = f"UPDATE {self._table} SET epoch = %s, digest = %s, written_at = now() WHERE query = %s AND sink = %s"
        connection.execute(query, [epoch.number, epoch.digest, epoch.query, epoch.sink])


def _require_not_less(held: LedgerEntry, epoch: Epoch) -> None:
    """The database was restored during the run."""
    if epoch.before is not None and held.epoch < epoch.before.epoch:
        raise RunError(rolled_back(epoch, f", and holds epoch {held.epoch} now"))
