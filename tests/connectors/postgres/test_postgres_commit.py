"""The commit itself, without Spark around it: writers that meet, tasks that come twice, rows that are gone, groups that fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import psycopg
import pyarrow as pa
import pytest
from tests.servers.postgres import Database

from millstream.connectors.postgres.worker import staging
from millstream.connectors.postgres.write.commit import Work, commit, discard, sweep
from millstream.connectors.postgres.write.ledger import Ledger
from millstream.errors import MillstreamError, TemporaryError
from millstream.plan.components import Epoch, LedgerEntry

FIRST, SECOND = Epoch("query", "sink", 0, "one", ""), Epoch("query", "sink", 1, "two", "")


@dataclass(frozen=True)
class Place:
    """A schema with a table `t`, a ledger, and what is staged."""

    postgres: Database
    schema: str

    def staged(self, *ids: int, prefix: str = "stage_a") -> staging.Attempt:
        """What a task does with its rows."""
        job = staging.StagingJob(self.postgres.address.text, f'"{self.schema}"', prefix, "id bigint")
        return staging._stage(job, pa.RecordBatch.from_pydict({"id": list(ids)}), iter(()))

    def work(self, *attempts: staging.Attempt, table: str = "t") -> Work:
        def statements(tables: Sequence[str]) -> Iterator[str]:
            yield f"INSERT INTO {self.schema}.{table} " + " UNION ALL ".join(f"SELECT id FROM {each}" for each in tables)

        return Work(self.postgres.address, Ledger(self.schema), attempts, statements)

    def ids(self) -> list[int]:
        return [id_ for (id_,) in self.postgres.rows(f"SELECT id FROM {self.schema}.t ORDER BY id")]

    def left(self) -> list[str]:
        """Staging tables that are there."""
        query = f"SELECT tablename FROM pg_tables WHERE schemaname = '{self.schema}' AND starts_with(tablename::text, 'stage')"
        return [name for (name,) in self.postgres.rows(query)]

    def held(self, epoch: Epoch) -> LedgerEntry | None:
        with psycopg.connect(self.postgres.address.text) as connection:
            return Ledger(self.schema).read(connection, epoch)


@pytest.fixture
def place(postgres: Database) -> Place:
    made = Place(postgres, postgres.schema())
    postgres.run(f"CREATE TABLE {made.schema}.t (id bigint)")
    with psycopg.connect(postgres.address.text) as connection:
        Ledger(made.schema).create(connection)
    return made


def code(go: Callable[[], object]) -> str:
    with pytest.raises(MillstreamError) as caught:
        go()
    return caught.value.diagnostics[0].code


def test_of_two_writers_of_an_epoch_one_writes(place: Place) -> None:
    """The second waits for the first, finds its epoch done, and leaves it alone."""
    commit([(place.work(place.staged(1)), FIRST)])
    merging, go_on = threading.Event(), threading.Event()
    slow = place.work(place.staged(2))

    def slowly(tables: Sequence[str]) -> Iterator[str]:
        merging.set()
        assert go_on.wait(30)
        yield from slow.statements(tables)

    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'millstream'"
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(commit, [(replace(slow, statements=slowly), SECOND)])
        assert merging.wait(30)
        two = pool.submit(commit, [(place.work(place.staged(2)), SECOND)])
        deadline = time.monotonic() + 300
        while not two.done() and place.postgres.rows(waiting) == [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        go_on.set()
        one.result(30), two.result(30)
    assert (place.ids(), place.left()) == ([1, 2], [])


@pytest.mark.parametrize("other", [replace(SECOND, digest="other"), FIRST])
def test_another_history_is_refused_and_nothing_is_written(place: Place, other: Epoch) -> None:
    commit([(place.work(place.staged(1)), FIRST)])
    commit([(place.work(place.staged(2)), SECOND)])
    assert code(lambda: commit([(place.work(place.staged(3)), other)])) == "MS055"
    assert (place.ids(), place.held(SECOND)) == ([1, 2], LedgerEntry(1, "two"))


def test_a_task_that_was_tried_again_counts_once(place: Place) -> None:
    lost, counted = place.staged(1, 2), place.staged(1, 2)
    commit([(place.work(counted), FIRST)])
    assert (place.ids(), place.left()) == ([1, 2], [lost.table])


@pytest.mark.parametrize("harm", ["TRUNCATE", "DROP TABLE"])
def test_rows_that_are_gone_are_missed(place: Place, harm: str) -> None:
    kept, gone = place.staged(1), place.staged(2)
    place.postgres.run(f"{harm} {place.schema}.{gone.table}")
    with pytest.raises(TemporaryError, match="MS117"):
        commit([(place.work(kept, gone), FIRST)])
    assert (place.ids(), place.held(FIRST)) == ([], None)


def test_only_what_is_its_own_is_swept(place: Place) -> None:
    place.staged(1)
    others = place.staged(1, prefix="stage_ab")
    with psycopg.connect(place.postgres.address.text) as connection:
        sweep(connection, place.schema, "stage_a")
    assert place.left() == [others.table]


def test_what_is_given_up_does_not_stay(place: Place) -> None:
    discard(place.work(place.staged(1), place.staged(2)))
    assert place.left() == []


def test_a_group_commits_as_one(place: Place) -> None:
    """The second table refuses: the first is as it was, and the ledger too; nothing stays staged."""
    place.postgres.run(f"CREATE TABLE {place.schema}.u (id bigint CHECK (id < 5))")
    other = replace(FIRST, sink="other")
    works = [(place.work(place.staged(1)), FIRST), (place.work(place.staged(7), table="u"), other)]
    assert code(lambda: commit(works)) == "MS113"
    assert (place.ids(), place.held(FIRST), place.held(other), place.left()) == ([], None, None, [])
    commit([(place.work(place.staged(1)), FIRST), (place.work(place.staged(3), table="u"), other)])
    assert (place.ids(), place.held(FIRST), place.held(other)) == ([1], LedgerEntry(0, "one"), LedgerEntry(0, "one"))
