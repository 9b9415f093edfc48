"""One transaction per epoch: lock the ledger, check that every staged row still exists, merge, write the ledger, drop the staging
tables. The rows of a small epoch come with the merge.

If the connection breaks during the commit, its result is unknown. The query restarts and reads the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.clients.postgres import Address, is_temporary, open_connection, quote_name, state_of
from millstream.connectors.postgres.worker import staging
from millstream.connectors.postgres.worker.row_probe import ROWS_TO_BLAME, sentence
from millstream.connectors.postgres.worker.staging import Attempt
from millstream.connectors.postgres.write.given_rows import GivenRows
from millstream.connectors.postgres.write.ledger import Ledger
from millstream.errors import Diagnostic, MillstreamError, RunError, TemporaryError
from millstream.jvm.job_retry import retry_dead_workers
from millstream.jvm.pickling import by_value
from millstream.plan.components import Epoch, NodeContext

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Work:
    """The staged rows of one epoch of one sink, and their merge."""

    address: Address
    ledger: Ledger
    attempts: tuple[Attempt, ...]
    statements: Callable[[Sequence[str]], Iterator[str]]
    """The merge, from these tables."""
    blame: Callable[[], str] = field(repr=False, default=lambda: "")
    """Names the row that the merge fails on."""
    given: GivenRows | None = None
    """The rows of a small epoch, which are in no table."""

    @property
    def tables(self) -> list[str]:
        return [quote_name(self.ledger.schema, attempt.table) for attempt in self.attempts]

    @property
    def sources(self) -> list[str]:
        """The table expressions that hold the rows."""
        return [self.given.source] if self.given else self.tables

    @property
    def rows(self) -> int:
        return self.given.count if self.given else sum(attempt.rows for attempt in self.attempts)

    def parameters(self, statement: str) -> tuple[str, ...]:
        """The parameters of a statement of the merge."""
        return self.given.arrays if self.given and self.given.source in statement else ()


def stage(frame: DataFrame, job: staging.StagingJob) -> list[Attempt]:
    """Stage the rows of a frame: one staging table per task that has any."""
    from millstream.connectors.postgres import worker

    function = staging.make_stager(job)
    with by_value(worker):
        # a new frame for each attempt: Spark caches the failure of a frame
        rows = retry_dead_workers(lambda: frame.mapInArrow(function, staging.RESULT).collect())  # type: ignore[arg-type]  # it gets an iterator
    return [Attempt(*row) for row in rows]


def refuse(attempts: Sequence[Attempt], sink: str, address: Address, blame: Callable[[], str]) -> None:
    """Raise the first failure of the workers."""
    failed = next((attempt for attempt in attempts if attempt.state), None)
    if failed is None:
        return
    said = sentence(failed.error)
    if failed.state == "?" or is_temporary(failed.state):
        code = "MS110" if failed.state == "?" else "MS112"
        raise TemporaryError(Diagnostic(code, f"sink `{sink}` could not stage its rows in Postgres at `{address}`: {said}"))
    row = blame() if failed.state.startswith(ROWS_TO_BLAME) else ""
    raise RunError(refusal(sink, f"{said} ({failed.state})", row))


def refusal(sink: str, said: str, row: str) -> Diagnostic:
    """A row that Postgres refuses."""
    help_ = "`on_error: {dead_letter: SINK}` sends such rows to a sink; `on_error: drop` drops them"
    return Diagnostic("MS116", f"Postgres refuses a row of sink `{sink}`: {said}", detail=row, help=help_)


Transactions = Callable[[Address], "AbstractContextManager[psycopg.Connection[Any]]"]
"""Opens a transaction at an address."""


def commit(works: Sequence[tuple[Work, Epoch]], begin: Transactions = open_connection) -> None:
    """Commit all of them in one transaction."""
    first, _ = works[0]
    _require_one_database(works)
    blamed: Work | None = None
    sink = ""
    try:
        with begin(first.address) as connection:
            for work, epoch in works:
                blamed, sink = work, epoch.sink
                if work.ledger.claim(connection, epoch):
                    _merge(connection, work, epoch)
                _drop(connection, work.tables)
                if work is not works[-1][0]:
                    _await_answers(connection)
            if works[-1][0].given is None:  # else the answer to the merge comes with that to the commit
                blamed = None
    except TemporaryError:
        raise
    except MillstreamError as error:
        row = blamed.blame() if blamed and state_of(error.__cause__ or error).startswith(ROWS_TO_BLAME) else ""
        for work, _ in works:
            give_up(work)
        if row:
            raise RunError(refusal(sink, error.diagnostics[0].message.partition("refuses: ")[2], row)) from error
        raise


def _require_one_database(works: Sequence[tuple[Work, Epoch]]) -> None:
    places = {(str(work.address), work.address.parts.get("user")): epoch.sink for work, epoch in works}
    if len(places) > 1:
        sinks = " and ".join(f"`{sink}`" for sink in places.values())
        message = f"sinks {sinks} commit together, but write to different databases"
        raise RunError(Diagnostic("MS109", message, help="one transaction is one database and one login: give them other groups"))


def _merge(connection: psycopg.Connection[Any], work: Work, epoch: Epoch) -> None:
    import psycopg

    if work.rows:
        _require_rows(connection, work, epoch)
        for statement in work.statements(work.sources):
            psycopg.RawCursor(connection).execute(statement, work.parameters(statement) or None)
    work.ledger.write(connection, epoch)


def _await_answers(connection: psycopg.Connection[Any]) -> None:
    """Wait until all statements are done: an error belongs to the work that is at it."""
    connection.execute("SELECT 1").fetchone()


def _require_rows(connection: psycopg.Connection[Any], work: Work, epoch: Epoch) -> None:
    """A server crash empties staging tables, and a table may be missing."""
    for attempt, table in zip(work.attempts, work.tables, strict=True):
        present = connection.execute("SELECT to_regclass(%s)", [table]).fetchone() != (None,)
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone() if present else (0,)
        if found != (attempt.rows,):
            message = (
                f"sink `{epoch.sink}` has staged {attempt.rows} rows of epoch {epoch.number}, and the database has {(found or (0,))[0]}"
            )
            detail = "the server was restarted in between; the epoch is staged again"
            raise TemporaryError(Diagnostic("MS117", message, detail=detail))


def discard(work: Work) -> None:
    """Remove the staged rows."""
    if work.attempts:
        with open_connection(work.address) as connection:
            _drop(connection, work.tables)


def give_up(work: Work) -> None:
    """Remove the staged rows if possible: otherwise the next start does."""
    with suppress(MillstreamError):
        discard(work)


def _drop(connection: psycopg.Connection[Any], tables: Sequence[str]) -> None:
    if tables:
        connection.execute(f"DROP TABLE IF EXISTS {', '.join(tables)}")


def prefix(context: NodeContext, epoch: Epoch) -> str:
    """The prefix of the staging tables of a sink in one query, unique in this checkpoint: several queries can share a sink."""
    place = f"{context.storage.url}/{context.pipeline}/{epoch.sink}/{epoch.query}"
    return f"stage_{hashlib.sha256(place.encode()).hexdigest()[:16]}"


def sweep(connection: psycopg.Connection[Any], schema: str, begins: str) -> None:
    """Remove the staging tables of failed attempts."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename::text, %s)"
    _drop(connection, [quote_name(schema, name) for (name,) in connection.execute(query, [schema, f"{begins}_"]).fetchall()])
