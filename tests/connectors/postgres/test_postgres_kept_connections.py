"""The connection that stays open between small epochs: what may happen to it, and what is in the table then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import psycopg
import pytest
from tests.servers.postgres import Database

from millstream.clients.postgres import Address
from millstream.connectors.postgres.write.columns import StagedColumn
from millstream.connectors.postgres.write.commit import Work, commit
from millstream.connectors.postgres.write.given_rows import GivenRows
from millstream.connectors.postgres.write.kept_connections import KeptConnections, _is_usable
from millstream.connectors.postgres.write.ledger import Ledger
from millstream.dev.postgres import start_postgres
from millstream.errors import MillstreamError, TemporaryError
from millstream.plan.components import Epoch, LedgerEntry

COLUMNS = (StagedColumn("id", "bigint", "bigint"),)


def epoch(number: int, digest: str = "d", before: LedgerEntry | None = None) -> Epoch:
    return Epoch("query", "sink", number, digest, "", before=before)


@dataclass
class Place:
    """A schema with a table `t`, a ledger, and the connections of one run."""

    postgres: Database
    schema: str
    address: Address
    kept: KeptConnections = field(default_factory=KeptConnections)

    def commit(self, number: int, *ids: int, meanwhile: Callable[[], object] = lambda: None, of: Epoch | None = None) -> None:
        def statements(sources: Sequence[str]) -> Iterator[str]:
            meanwhile()
            yield f"INSERT INTO {self.schema}.t SELECT * FROM {sources[0]}"

        given = GivenRows(COLUMNS, ("{" + ",".join(map(str, ids or (number,))) + "}",), len(ids) or 1)
        work = Work(self.address, Ledger(self.schema), (), statements, given=given)
        commit([(work, of or epoch(number))], self.kept.transaction)

    def code(self, go: Callable[[], object]) -> str:
        with pytest.raises(MillstreamError) as caught:
            go()
        return caught.value.diagnostics[0].code

    def ids(self) -> list[int]:
        return [id_ for (id_,) in self.postgres.rows(f"SELECT id FROM {self.schema}.t ORDER BY id")]

    def sessions(self) -> list[str]:
        """The states of our sessions."""
        query = "SELECT state FROM pg_stat_activity WHERE application_name = 'millstream' AND position('-c x.y' in query) = 0"
        query += f" AND query LIKE '%{self.schema}%' OR application_name = 'millstream' AND query = 'COMMIT'"
        return [state for (state,) in self.postgres.rows(query)]

    def await_no_session(self) -> None:
        deadline = time.monotonic() + 10
        while self.sessions():
            assert time.monotonic() < deadline, "a session is still open"
            time.sleep(0.01)

    def terminate(self) -> None:
        self.postgres.run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'millstream' AND pid <> pg_backend_pid()"
        )


def make_place(postgres: Database, **settings: str) -> Place:
    schema = postgres.schema()
    postgres.run(f"CREATE TABLE {schema}.t (id bigint CHECK (id < 1000))")
    with psycopg.connect(postgres.address.text) as connection:
        Ledger(schema).create(connection)
    return Place(postgres, schema, replace(postgres.address, settings=settings))


@pytest.fixture
def place(own: Database) -> Iterator[Place]:
    made = make_place(own)
    yield made
    made.kept.close()


@pytest.fixture(scope="module")
def own() -> Iterator[Database]:
    """A server that a test may restart."""
    with start_postgres() as server:
        yield Database(server)


pytestmark = pytest.mark.server


def test_one_connection_serves_all_epochs_and_no_transaction_stays_open(place: Place) -> None:
    for number in range(3):
        place.commit(number)
        assert place.sessions() == ["idle"]
    place.kept.close()
    place.await_no_session()
    assert place.ids() == [0, 1, 2]


@pytest.mark.parametrize("harm", ["terminate", "restart"])
def test_a_connection_that_is_lost_between_epochs_is_replaced_without_an_error(place: Place, harm: str) -> None:
    place.commit(0)
    place.terminate() if harm == "terminate" else place.postgres.server.restart()
    place.commit(1)
    assert place.ids() == [0, 1]


def test_a_connection_that_the_server_closes_because_it_is_idle_is_replaced(own: Database) -> None:
    place = make_place(own, idle_session_timeout="500ms")
    place.commit(0)
    ((_, connection),) = place.kept._idle
    connection.execute("SELECT 1")  # Postgres 15 does not always start its clock after a pipeline
    deadline = time.monotonic() + 10
    while _is_usable(connection):
        assert time.monotonic() < deadline, "the server has not closed it"
        time.sleep(0.01)
    place.commit(1)
    assert place.ids() == [0, 1]
    place.kept.close()


def test_a_transaction_that_ends_after_the_connections_were_closed_closes_its_own(place: Place) -> None:
    place.commit(0, meanwhile=place.kept.close)
    place.await_no_session()
    assert place.ids() == [0]


def test_a_connection_that_is_lost_during_the_transaction_is_temporary_and_leaves_nothing(place: Place) -> None:
    place.commit(0)
    with pytest.raises(TemporaryError):
        place.commit(1, meanwhile=place.terminate)
    assert place.ids() == [0]
    place.commit(1)
    assert place.ids() == [0, 1]


def test_a_statement_that_takes_too_long_is_temporary(own: Database) -> None:
    place = make_place(own, statement_timeout="2s")
    place.commit(0)
    with psycopg.connect(own.address.text) as blocking:
        blocking.execute(f"LOCK TABLE {place.schema}.t IN ACCESS EXCLUSIVE MODE")
        assert place.code(lambda: place.commit(1)) == "MS112"
    place.commit(1)
    assert place.ids() == [0, 1]
    place.kept.close()


def test_a_row_that_is_refused_leaves_nothing_and_the_next_epoch_works(place: Place) -> None:
    place.commit(0)
    assert place.code(lambda: place.commit(1, 1, 1000)) == "MS113"
    place.commit(1)
    assert place.ids() == [0, 1]


def test_a_copy_of_the_pipeline_is_stopped_and_a_repeated_epoch_is_not_written_again(place: Place) -> None:
    copy = replace(place, kept=KeptConnections())
    place.commit(0)
    copy.commit(0)
    place.commit(1)
    assert copy.code(lambda: copy.commit(1, of=epoch(1, "other"))) == "MS055"
    assert copy.code(lambda: copy.commit(0)) == "MS055"
    assert place.ids() == [0, 1]
    copy.kept.close()


def test_a_database_that_went_back_is_noticed(place: Place) -> None:
    place.commit(0)
    assert place.code(lambda: place.commit(5, of=epoch(5, before=LedgerEntry(4, "d")))) == "MS140"
    assert place.ids() == [0]


def test_without_the_ledger_a_repeated_epoch_comes_twice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(Ledger, "claim", lambda self, connection, epoch: True)
    place.commit(0)
    place.commit(0)
    assert place.ids() == [0, 0]
