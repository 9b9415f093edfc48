"""The common part of sinks into Postgres: connect, read the ledger, stage rows, commit them with the ledger, clean up."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.clients.postgres import PostgresOptions, open_connection, quote_name, require_client
from millstream.connectors.postgres.worker.staging import StagingJob
from millstream.connectors.postgres.write import commit
from millstream.connectors.postgres.write.columns import StagedColumn, column_definitions, to_staging_types
from millstream.connectors.postgres.write.commit import Work, discard, give_up, prefix, refuse, stage, sweep
from millstream.connectors.postgres.write.given_rows import SmallWay
from millstream.connectors.postgres.write.kept_connections import KeptConnections
from millstream.connectors.postgres.write.ledger import Ledger
from millstream.connectors.postgres.write.options import PostgresTarget
from millstream.errors import RunError, TemporaryError
from millstream.plan.components import Epoch, LedgerEntry, NodeContext, SinkRun, Staged

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame, SparkSession

_REACHED = "reached"
"""A file of the node's folder: the server has answered at least once."""


class PostgresDelivery(PostgresTarget):
    """The options of a sink that commits an epoch in one transaction."""

    adjustable: ClassVar[frozenset[str]] = frozenset(
        {*PostgresOptions.model_fields, "connections", "commit_group", "create"} - {"database"}
    )

    @property
    def address_text(self) -> str:
        return f"database {self.database} on {self.host}:{self.port}"

    @property
    def recalls_without_spark(self) -> bool:
        return True


class PostgresDeliveryRun(SinkRun[Work]):
    """Collects the rows of small epochs, stages others on the workers, and commits them in one transaction with the ledger."""

    def __init__(self, target: PostgresDelivery, context: NodeContext) -> None:
        super().__init__(context)
        self.target = target
        self._run_id = uuid.uuid4().hex[:8]
        self._staged: set[str] = set()
        """Prefixes of the staging tables that this run has made."""
        self._holding: set[str] = set()
        """The queries whose epochs the table holds."""
        self._small_ways: dict[str, SmallWay] = {}
        """By query: the queries that share a sink run in threads of their own."""
        self._kept = KeptConnections()

    @property
    def held(self) -> bool:
        """Whether the ledger has an entry of this sink: then its table must exist."""
        return bool(self._holding)

    def prepare(self, spark: SparkSession) -> None:
        require_client()
        with first_contact(self.context), open_connection(self.target.address()) as connection:
            self._ledger.create(connection)

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """Called before the query stages its first rows: tables of earlier starts are removed."""
        with open_connection(self.target.address()) as connection:
            sweep(connection, self.target.metadata_schema, prefix(self.context, epoch))
            return self._read(connection, epoch)

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        with open_connection(self.target.address()) as connection:
            return self._read(connection, epoch)

    def _read(self, connection: psycopg.Connection[Any], epoch: Epoch) -> LedgerEntry | None:
        entry = self._ledger.read(connection, epoch)
        (self._holding.discard if entry is None else self._holding.add)(epoch.query)
        return entry

    def stage_columns(
        self,
        frame: DataFrame,
        columns: tuple[StagedColumn, ...],
        key: tuple[str, ...],
        epoch: Epoch,
        statements: Callable[[Sequence[str]], Iterator[str]],
        blame: Callable[[], str] = lambda: "",
    ) -> Staged[Work]:
        """Stage the columns of a frame, with the statements that will merge them. Rows that cannot be computed twice are held until they
        are staged, in case they turn out to be many.
        """
        way = self.small_way(epoch)
        small = way.is_open()
        with hold(frame) if small and not epoch.repeatable else nullcontext():
            given = way.collect(frame, columns, key) if small else None
            if given is not None:
                return Staged(given.count, Work(self.target.address(), self._ledger, (), statements, blame, given))
            staged = self._stage_in_tables(to_staging_types(frame, columns), column_definitions(columns, key), epoch, statements, blame)
        return replace(staged, reads=2 if small and epoch.repeatable else 1)

    def _stage_in_tables(
        self,
        rows: DataFrame,
        definition: str,
        epoch: Epoch,
        statements: Callable[[Sequence[str]], Iterator[str]],
        blame: Callable[[], str],
    ) -> Staged[Work]:
        address, schema = self.target.address(), self.target.metadata_schema
        own = f"{prefix(self.context, epoch)}_{self._run_id}"
        self._staged.add(own)
        attempts = stage(rows.coalesce(self.target.connections), StagingJob(address.text, quote_name(schema), own, definition))
        work = Work(address, self._ledger, tuple(attempts), statements, blame)
        try:
            refuse(attempts, epoch.sink, address, blame)
        except TemporaryError:  # the next start cleans up, when the server answers
            raise
        except RunError:
            give_up(work)
            raise
        self.small_way(epoch).learn(work.rows, sum(attempt.size for attempt in attempts))
        return Staged(work.rows, work)

    def commit(self, staged: Staged[Work], epoch: Epoch) -> None:
        self.commit_together([(staged, epoch)])

    def commit_together(self, works: Sequence[tuple[Staged[Work], Epoch]]) -> None:
        small = all(staged.work.given for staged, _ in works)
        commit.commit([(staged.work, epoch) for staged, epoch in works], self._kept.transaction if small else open_connection)

    def abort(self, staged: Staged[Work], epoch: Epoch) -> None:
        discard(staged.work)

    def close(self) -> None:
        """Remove the staging tables of attempts that no epoch counted: those of workers that died after they had staged. Only this run's:
        another run may have taken over the checkpoint.
        """
        self._kept.close()
        if not self._staged:
            return
        with open_connection(self.target.address().to(connect_timeout="2")) as connection:
            for own in self._staged:
                sweep(connection, self.target.metadata_schema, own)

    def small_way(self, epoch: Epoch) -> SmallWay:
        if epoch.query not in self._small_ways:
            self._small_ways[epoch.query] = SmallWay()
        return self._small_ways[epoch.query]

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self.target.metadata_schema, self.context.pipeline)


@contextmanager
def hold(frame: DataFrame) -> Iterator[None]:
    """Keep the rows of a frame from their first computation until the end of the body, unless they are kept for others anyway."""
    if frame.is_cached:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


@contextmanager
def first_contact(context: NodeContext) -> Iterator[None]:
    """Run the body, which talks to the server. A server that has answered before may be down for a while. If a server has never answered,
    its address is wrong, and a retry does not help.
    """
    try:
        yield
    except TemporaryError as error:
        raise error if context.storage.exists(_REACHED) else RunError(error.diagnostics) from None
    context.storage.put_once(_REACHED, b"")
