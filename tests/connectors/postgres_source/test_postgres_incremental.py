"""Rows beyond a cursor: each once, however many share a cursor at the end of an epoch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.postgres_source.follower import code
from tests.servers.postgres import Database

from millstream.clients.storage import LocalStorage
from millstream.connectors.postgres.source import PostgresSource
from millstream.dev.postgres import NAME
from millstream.errors import RunError
from millstream.plan.components import NodeContext

Rows = list[dict[str, Any]]


class Poller:
    """A source that polls, driven by hand."""

    def __init__(self, postgres: Database, table: str, folder: Path, key: tuple[str, ...] = (), **options: Any) -> None:
        login = {"host": "127.0.0.1", "port": postgres.server.port, "database": NAME, "user": NAME, "password": NAME}
        mode = {"type": "incremental", "cursor": options.pop("cursor", "at"), **options.pop("mode", {})}
        source = PostgresSource(table=table, mode=mode, partitions=2, **login, **options)
        context = NodeContext("t", folder, LocalStorage(folder), find_key=lambda: key)
        self.reader, _ = source.open(context).open_reader(None)  # type: ignore[arg-type]
        self.at = self.reader.first()

    def epoch(self) -> Rows:
        end = self.reader.latest()
        found = self.between(self.at, end) if end != self.at else []
        self.at = end
        return found

    def between(self, start: Any, end: Any) -> Rows:
        return [row for part in self.reader.parts(start, end) for batch in self.reader.read(part) for row in batch.to_pylist()]


@pytest.fixture
def events(postgres: Database) -> str:
    name = f"{postgres.schema()}.events"
    postgres.run(f'CREATE TABLE {name} (id text COLLATE "C", part int, at timestamptz, PRIMARY KEY (id, part))')
    return name


def ids(rows: Rows) -> list[str]:
    return sorted(row["id"] for row in rows)


def test_rows_with_equal_cursors_are_neither_lost_nor_read_twice(postgres: Database, events: str, tmp_path: Path) -> None:
    poller = Poller(postgres, events, tmp_path)
    assert poller.epoch() == []
    postgres.run(f"INSERT INTO {events} VALUES ('b', 1, '2026-01-01'), ('b', 2, '2026-01-01'), ('it''s', 1, '2025-01-01')")
    assert ids(poller.epoch()) == ["b", "b", "it's"]
    postgres.run(f"INSERT INTO {events} VALUES ('b', 3, '2026-01-01'), ('c', 1, '2026-01-01'), ('z', 1, '2026-01-02')")
    assert ids(poller.epoch()) == ["b", "c", "z"]
    assert poller.epoch() == []
    postgres.run(f"UPDATE {events} SET at = '2026-01-03' WHERE id = 'c'")
    assert ids(poller.epoch()) == ["c"]


def test_a_cursor_alone_would_lose_them(postgres: Database, events: str, tmp_path: Path) -> None:
    """The control: compared by cursor only, the second half of the rows that share it is never read."""
    postgres.run(f"INSERT INTO {events} VALUES ('a', 1, '2026-01-01')")
    poller = Poller(postgres, events, tmp_path)
    poller.epoch()
    postgres.run(f"INSERT INTO {events} VALUES ('b', 1, '2026-01-01')")
    assert postgres.rows(f"SELECT id FROM {events} WHERE at > '2026-01-01'") == []
    assert ids(poller.epoch()) == ["b"]


def test_rows_without_a_cursor_come_when_they_have_one(postgres: Database, events: str, tmp_path: Path) -> None:
    poller = Poller(postgres, events, tmp_path)
    postgres.run(f"INSERT INTO {events} VALUES ('a', 1, NULL), ('b', 1, '2026-01-01')")
    assert ids(poller.epoch()) == ["b"]
    postgres.run(f"UPDATE {events} SET at = '2026-02-01' WHERE id = 'a'")
    assert ids(poller.epoch()) == ["a"]


def test_many_rows_are_read_in_parts_and_again_after_a_crash(postgres: Database, events: str, tmp_path: Path) -> None:
    at = "'2026-01-01'::timestamptz + n / 100 * interval '1 s'"
    postgres.run(f"INSERT INTO {events} SELECT md5(n::text), 1, {at} FROM generate_series(1, 45000) n")
    poller = Poller(postgres, events, tmp_path, where="part = 1")
    end = poller.reader.latest()
    assert len(poller.reader.parts(poller.at, end)) > 1
    first = poller.epoch()
    assert len(set(ids(first))) == len(first) == 45000
    again = Poller(postgres, events, tmp_path, where="part = 1")
    postgres.run(f"INSERT INTO {events} VALUES ('later', 1, '2027-01-01')")
    assert ids(again.between(again.at, end)) == ids(first)


def test_numbers_are_ordered_as_numbers(postgres: Database, events: str, tmp_path: Path) -> None:
    poller = Poller(postgres, events, tmp_path, cursor="part")
    for part in (8, 9, 10, 11, 100):
        postgres.run(f"INSERT INTO {events} VALUES ('{part}', {part})")
        assert [row["part"] for row in poller.epoch()] == [part]


def test_young_rows_wait(postgres: Database, events: str, tmp_path: Path) -> None:
    poller = Poller(postgres, events, tmp_path, mode={"delay": "2s"})
    postgres.run(f"INSERT INTO {events} VALUES ('a', 1, now()), ('b', 1, now() - interval '1 min')")
    assert ids(poller.epoch()) == ["b"]
    found: Rows = []
    deadline = time.monotonic() + 300
    while not found and time.monotonic() < deadline:
        found = poller.epoch()
    assert ids(found) == ["a"]


def test_what_cannot_be_a_cursor_is_told(postgres: Database, events: str, tmp_path: Path) -> None:
    with pytest.raises(RunError) as raised:
        Poller(postgres, events, tmp_path, cursor="att")
    assert code(raised) == "MS120" and "did you mean `at`" in str(raised.value)
    with pytest.raises(RunError) as raised:
        Poller(postgres, events, tmp_path, cursor="part", mode={"delay": "1s"})
    assert code(raised) == "MS120"
    postgres.run(f"CREATE TABLE {events}2 (id int NOT NULL, at int)")
    with pytest.raises(RunError) as raised:
        Poller(postgres, f"{events}2", tmp_path)
    assert code(raised) == "MS124"
    assert Poller(postgres, f"{events}2", tmp_path, key=("id",)).epoch() == []
