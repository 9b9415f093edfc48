"""What every sink into Postgres does the same: reach the server, read the ledger, stage rows, commit them with the ledger, sweep up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from millstream.clients.postgres import PostgresOptions, connected, quoted, require_client
from millstream.connectors.postgres.writing import committing
from millstream.connectors.postgres.writing.columns import Column, defined, travelling
from millstream.connectors.postgres.writing.committing import Work, discard, give_up, prefix, refuse, stage, sweep
from millstream.connectors.postgres.writing.ledger import Ledger
from millstream.connectors.postgres.writing.options import PostgresTarget
from millstream.connectors.postgres.writing.reaching import reached
from millstream.connectors.postgres.writing.staging import Job
from millstream.errors import RunError, TransientError
from millstream.plan.components import Epoch, LedgerEntry, NodeContext, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class PostgresDelivery(PostgresTarget):
    """A sink whose epochs end in one transaction."""

    adjustable: ClassVar[frozenset[str]] = frozenset(
        {*PostgresOptions.model_fields, "connections", "commit_group", "create"} - {"database"}
    )

    @property
    def place(self) -> str:
        return f"database {self.database} on {self.host}:{self.port}"

    @property
    def recalls_alone(self) -> bool:
        return True

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        require_client()
        with reached(context), connected(self.address()) as connection:
            Ledger(self.metadata_schema).create(connection)
            sweep(connection, self.metadata_schema, prefix(context, context.name))

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        assert epoch.context is not None
        with connected(self.address()) as connection:
            held = Ledger(self.metadata_schema).read(connection, epoch)
        epoch.context.memory["held"] = held is not None
        return held

    def staged(
        self,
        frame: DataFrame,
        columns: tuple[Column, ...],
        key: tuple[str, ...],
        epoch: Epoch,
        statements: Callable[[Sequence[str]], Iterator[str]],
        blame: Callable[[], str] = lambda: "",
    ) -> Staged:
        """The columns of a frame in staging tables, and the statements that will merge them."""
        assert epoch.context is not None
        address = self.address()
        job = Job(address.text, quoted(self.metadata_schema), prefix(epoch.context, epoch.sink), defined(columns, key))
        attempts = stage(travelling(frame, columns).coalesce(self.connections), job, epoch.context)
        work = Work(address, Ledger(self.metadata_schema), tuple(attempts), statements, blame)
        try:
            refuse(attempts, epoch.sink, address, blame)
        except TransientError:  # the next start sweeps, when the server answers
            raise
        except RunError:
            give_up(work)
            raise
        return Staged(work.rows, work)

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        committing.commit([(staged.payload, epoch)])

    def commit_together(self, works: Sequence[tuple[Staged, Epoch]]) -> None:
        committing.commit([(staged.payload, epoch) for staged, epoch in works])

    def abort(self, staged: Staged, epoch: Epoch) -> None:
        discard(staged.payload)
