"""Connections that stay open between the epochs of a run, each for one transaction at a time.

Statements are sent in pipeline mode, without waiting for each answer: a transaction takes two round trips, one to lock the ledger and one
for the rest. Nothing is prepared on the server, and no transaction stays open, so that a pooler may lend the connection to others between
epochs. A connection on which anything failed is closed, which rolls back, and is not used again.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from millstream.clients.postgres import Address, connect, translate_errors

if TYPE_CHECKING:
    import psycopg


_IDLE_SECONDS = 60


class KeptConnections:
    """The idle connections of a sink: one for each query that writes to it at the same time."""

    def __init__(self) -> None:
        self._idle: list[tuple[float, psycopg.Connection[Any]]] = []
        """With the time since which each is idle."""
        self._closed = False

    @contextmanager
    def transaction(self, address: Address) -> Iterator[psycopg.Connection[Any]]:
        """Run the body as one transaction, and commit it. Errors become diagnostics; that of a statement may come with the next answer."""
        connection = self._take(address)
        try:
            with translate_errors(address), _pipeline(connection):
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        self._idle.append((time.monotonic(), connection))
        if self._closed:  # by another thread, during the transaction
            self.close()

    def close(self) -> None:
        self._closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop()[1].close()

    def _take(self, address: Address) -> psycopg.Connection[Any]:
        """An idle connection that the server has not closed meanwhile, or a new one. After a longer pause always a new one: a firewall may
        have forgotten the connection, and nothing would answer.
        """
        while True:
            try:
                since, connection = self._idle.pop()
            except IndexError:
                return _open(address)
            if time.monotonic() - since < _IDLE_SECONDS and _is_usable(connection):
                return connection
            connection.close()


def _open(address: Address) -> psycopg.Connection[Any]:
    connection = connect(address.to(client_encoding="utf8"), autocommit=True)
    connection.prepare_threshold = None
    return connection


def _is_usable(connection: psycopg.Connection[Any]) -> bool:
    """Whether the connection is idle and open, as far as this side knows: a server that restarts or closes idle sessions has
    sent something. That takes no round trip.
    """
    import psycopg

    with suppress(psycopg.Error, OSError, ValueError):
        told = select.select([connection.fileno()], [], [], 0)[0]
        return not told and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
    return False


@contextmanager
def _pipeline(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Send statements without waiting, and wait for all answers at the end."""
    import psycopg

    if not psycopg.Pipeline.is_supported():
        yield
        return
    failure: BaseException | None = None
    try:
        with connection.pipeline() as pipeline:
            try:
                yield
                pipeline.sync()
            except BaseException as error:  # noqa: BLE001 — raised below: with it, psycopg would log what is left in the pipeline
                failure = error
    except psycopg.Error as error:
        failure = failure or error
    if failure is not None:
        raise failure
