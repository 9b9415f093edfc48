"""What was read once is kept until it is committed: a crash repeats the same rows, and the slot follows the commits alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from tests.connectors.postgres_source.follower import Follower, code, ops
from tests.servers.postgres import Database

from millstream.connectors.postgres.read import changes
from millstream.connectors.postgres.read.slots import Names, advance
from millstream.connectors.postgres.read.spool import Spool
from millstream.errors import RunError, TemporaryError

Follow = Callable[..., Follower]


def confirmed(postgres: Database, follower: Follower) -> str:
    found: str = postgres.rows(f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{follower.slot}'")[0][0]
    return found


def test_a_planned_epoch_is_repeated_with_the_same_rows(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    planned = follower.plan()
    rows = follower.rows(planned)
    postgres.run(f"UPDATE {table} SET name = 'later'")
    after = follow(table, after=follower)
    further = after.plan()
    assert after.rows(planned) == rows and further["chunk"] == planned["chunk"] + 1
    assert ops(after.rows(further)) == [("i", 1, "a"), ("u", 1, "later")]


def test_the_slot_stays_until_rows_are_committed(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    before = confirmed(postgres, follower)
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    follower.epoch(commit=False)
    assert confirmed(postgres, follower) == before
    assert len(follower.epoch()) == 1
    assert confirmed(postgres, follower) > before
    assert not list(follower.context.directory.rglob("*.arrow")) and len(list(follower.context.directory.rglob("spool/*.json"))) == 1
    assert follower.epoch() == []
    after = confirmed(postgres, follower)
    follower.source.open(follower.context).on_commit(None, follower.at)  # type: ignore[arg-type]  # told twice, as after a crash
    assert confirmed(postgres, follower) == after


def test_the_slot_does_not_go_back(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    before, names = confirmed(postgres, follower), Names(follower.slot, follower.slot, *table.split("."))
    advance(follower.source.address(), names, 1)
    assert confirmed(postgres, follower) == before


def test_a_chunk_is_decided_once(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    number = follower.plan()["chunk"]
    spool = Spool(follower.context.storage)
    kept = spool.chunk(number)
    with pytest.raises(TemporaryError, match="another process"):
        spool.add(replace(kept, end=kept.end + 1))
    assert spool.chunk(number) == kept


def test_a_lost_spool_is_read_again_from_the_slot(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    chunk = follower.plan()["chunk"]
    (follower.context.directory / "node" / "spool" / f"{chunk:010d}.json").unlink()
    assert ops(follow(table, after=follower).epoch()) == [("i", 1, "a")]


def test_a_slot_that_somebody_else_moved_stops_the_source(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    postgres.run(f"SELECT pg_replication_slot_advance('{follower.slot}', pg_current_wal_lsn())")
    with pytest.raises(RunError) as raised:
        follower.epoch()
    assert code(raised) == "MS122"


def test_many_changes_are_spooled_in_chunks_between_transactions(
    postgres: Database, table: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_CHUNK_MESSAGES", 50)
    monkeypatch.setattr(changes, "_SLACK", 5)
    follower = follow(table)
    follower.epoch()
    with psycopg.connect(postgres.address.text, autocommit=True) as connection:
        for number in range(100):
            connection.execute(f"INSERT INTO {table} VALUES ({2 * number}, 'a'), ({2 * number + 1}, 'b')")
    end = follower.plan()
    assert end["chunk"] > 3
    pieces = [follower.rows({"chunk": n + 1}, {"chunk": n}) for n in range(1, end["chunk"])]
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert [row["id"] for piece in pieces for row in piece] == list(range(200))


def test_a_log_that_others_fill_is_let_go_of(postgres: Database, table: str, follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_IDLE_BYTES", 100_000)
    follower = follow(table)
    follower.epoch()
    before = confirmed(postgres, follower)
    postgres.run(f"CREATE TABLE {table}2 AS SELECT n, repeat('x', 100) FROM generate_series(1, 10000) n")
    assert follower.epoch() == []
    assert confirmed(postgres, follower) > before
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert ops(follower.epoch()) == [("i", 1, "a")]


def test_a_slot_in_use_is_waited_for(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    other = psycopg.connect(postgres.address.text + " replication=database", autocommit=True)
    options = f"(proto_version '1', publication_names '{follower.slot}')"
    other.pgconn.send_query(f"START_REPLICATION SLOT {follower.slot} LOGICAL 0/0 {options}".encode())
    until(lambda: active(postgres, follower))
    with pytest.raises(TemporaryError) as raised:
        follower.epoch()
    assert code(raised) == "MS122"
    other.close()
    until(lambda: not active(postgres, follower))
    assert follower.epoch() == []


def active(postgres: Database, follower: Follower) -> bool:
    return bool(postgres.rows(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{follower.slot}'")[0][0])


def until(true: Callable[[], bool]) -> None:
    assert any(true() for _ in range(1000))


def test_a_query_that_comes_too_late_is_told(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    follower.epoch()
    with pytest.raises(RunError) as raised:
        follower.rows(follower.plan(), {"chunk": 0})
    assert code(raised) == "MS128"


def test_two_queries_spool_one_stream(postgres: Database, table: str, follow: Follow) -> None:
    first = follow(table)
    first.prepare()
    second = follow(table, after=first)
    second.schema = first.schema
    second.prepare()
    with ThreadPoolExecutor(2) as pool:
        for number in range(15):
            postgres.run(f"INSERT INTO {table} VALUES ({number}, 'a')")
            ends = list(pool.map(Follower.plan, [first, second]))
    end = max(ends, key=lambda offset: offset["chunk"])
    assert first.rows(end) == second.rows(end)
    assert [row["id"] for row in first.rows(end)] == list(range(15))
    assert first.source.open(first.context).common_offset([{"chunk": 2}, {"chunk": 1}]) == {"chunk": 1}
