"""The ledger: which epoch of which query a database holds. The transaction that writes the rows writes it too: both are there or none.

Locking its row makes writers wait for each other: one that was thought dead and comes back finds its epoch done, and leaves it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.clients.postgres import quoted
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch, LedgerEntry, went_back

if TYPE_CHECKING:
    import psycopg

_TABLE = "ledger"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger's table, in the schema that holds what is ours."""

    schema: str

    @property
    def name(self) -> str:
        return quoted(self.schema, _TABLE)

    @property
    def _table(self) -> str:
        """The name in a statement with parameters."""
        return self.name.replace("%", "%%")

    def create(self, connection: psycopg.Connection[Any]) -> None:
        """Make the schema and the table, where they are missing."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('millstream'))")
        if self._exists(connection):
            return
        if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema]).fetchone() is None:
            connection.execute(f"CREATE SCHEMA {quoted(self.schema)}")
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
        """Lock the row; whether the epoch is still to be written."""
        pipeline = epoch.context.pipeline if epoch.context else ""
        row = [epoch.query, epoch.sink, pipeline]
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
        message = f"sink `{epoch.sink}` already holds epoch {held.epoch}, and this run is at epoch {epoch.number} of another history"
        detail = "does a copy of the pipeline run on a copy of the checkpoint? nothing was written"
        raise RunError(Diagnostic("MS055", message, detail=detail))

    def write(self, connection: psycopg.Connection[Any], epoch: Epoch) -> None:
        query = f"UPDATE {self._table} SET epoch = %s, digest = %s, written_at = now() WHERE query = %s AND sink = %s"
        connection.execute(query, [epoch.number, epoch.digest, epoch.query, epoch.sink])


def _require_not_less(held: LedgerEntry, epoch: Epoch) -> None:
    """A database that was restored while the run went on."""
    if epoch.before is not None and held.epoch < epoch.before.epoch:
        raise RunError(went_back(epoch, f", and holds epoch {held.epoch} now"))
