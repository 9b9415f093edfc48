"""From the table to its changes: nothing is missed and nothing comes twice, whatever is written meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.connectors.postgres_source.follower import Follower, ops
from tests.servers.postgres import Database

from millstream.connectors.postgres.read.decoding import Seen
from millstream.connectors.postgres.read.spool import Spool

Follow = Callable[..., Follower]


def handed_over(postgres: Database, table: str, follower: Follower) -> list[tuple[object, ...]]:
    """Rows written between slot and snapshot, and by a transaction that is open while the snapshot is taken."""
    follower.prepare()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'between')")
    with psycopg.connect(postgres.address.text) as open_one:
        open_one.execute(f"INSERT INTO {table} VALUES (2, 'open')")
        first = follower.epoch()
    return ops([*first, *follower.epoch()])


def test_what_the_snapshot_saw_does_not_come_again(postgres: Database, table: str, follow: Follow) -> None:
    assert handed_over(postgres, table, follow(table)) == [("i", 1, "between"), ("i", 2, "open")]


def test_without_the_list_of_what_it_saw_rows_come_twice(
    postgres: Database, table: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seen, "has", lambda self, number, commit: False)
    assert sorted(handed_over(postgres, table, follow(table))) == [("i", 1, "between"), ("i", 1, "between"), ("i", 2, "open")]


def test_numbers_of_transactions_are_told_apart_after_they_wrapped() -> None:
    seen = Seen.of(f"{2**32 + 3}:{2**32 + 10}:{2**32 + 5}", until=100)
    assert [seen.has(number, commit=99) for number in (9, 10, 5, 3, 2**32 - 1)] == [True, False, False, True, True]
    assert not seen.has(9, commit=100)


def test_rows_of_busy_writers_come_once(postgres: Database, table: str, follow: Follow) -> None:
    postgres.run(f"INSERT INTO {table} SELECT n, 'old' FROM generate_series(1, 50000) n")
    stop, count = threading.Event(), [0, 0]

    def write(worker: int) -> None:
        with psycopg.connect(postgres.address.text, autocommit=True) as connection:
            while not stop.is_set() and count[worker] < 3000:
                count[worker] += 1
                number = 100_000 + 2 * count[worker] + worker
                connection.execute(f"INSERT INTO {table} VALUES ({number}, 'new'), ({-number}, 'new')")

    writers = [threading.Thread(target=write, args=[worker]) for worker in range(2)]
    for writer in writers:
        writer.start()
    follower = follow(table)
    rows = [*follower.epoch(), *follower.epoch()]
    stop.set()
    for writer in writers:
        writer.join()
    rows += follower.epoch()
    assert {row["_op"] for row in rows} == {"i"} and min(count) > 10
    assert sorted(row["id"] for row in rows) == [row[0] for row in postgres.rows(f"SELECT id FROM {table} ORDER BY id")]
    assert [row["_seq"] for row in rows] == list(range(len(rows)))


def test_an_old_slot_is_taken_up_with_a_new_snapshot(postgres: Database, table: str, follow: Follow, tmp_path: Path) -> None:
    first = follow(table)
    first.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')", f"UPDATE {table} SET name = 'b'")
    again = follow(table, tmp_path / "again", after=first)
    again.at = {"chunk": 0}
    assert ops(again.epoch()) == [("i", 1, "b")]
    assert again.epoch() == []


def test_what_it_saw_is_remembered_from_chunk_to_chunk(postgres: Database, table: str, follow: Follow) -> None:
    """Transactions become visible in another order than they are logged: one that was seen may come after one that was not."""
    follower = follow(table)
    first = follower.plan()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    spool, second = Spool(follower.context.storage), follower.plan()
    assert second != first and spool.chunk(second["chunk"]).seen == spool.chunk(first["chunk"]).seen != ""
