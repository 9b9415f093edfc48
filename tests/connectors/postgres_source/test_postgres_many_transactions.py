"""Two thousand million transactions after the first snapshot their numbers come round: changes are delivered all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.connectors.postgres_source.follower import Follower, ops
from tests.servers.postgres import Database

Follow = Callable[..., Follower]


def note(follower: Follower, **facts: object) -> None:
    """Change what the last chunk remembers."""
    (manifest,) = Path(follower.context.directory).rglob("spool/*.json")
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | facts))


def age(postgres: Database, follower: Follower) -> None:
    """The snapshot that is remembered becomes 2³¹ transactions older."""
    ((now,),) = postgres.rows("SELECT pg_current_xact_id()::text::int8")
    note(follower, seen=f"{now + 2**31}:{now + 2**31}:")


def test_changes_long_after_the_snapshot_are_delivered(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    age(postgres, follower)
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert ops(follower.epoch()) == [("i", 1, "a")]


def test_a_chunk_of_an_older_version_notes_it_with_the_next_one(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    note(follower, until=0)
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert ops(follower.epoch()) == [("i", 1, "a")]
    age(postgres, follower)
    postgres.run(f"INSERT INTO {table} VALUES (2, 'b')")
    assert ops(follower.epoch()) == [("i", 2, "b")]


def test_by_their_numbers_alone_they_would_be_lost(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    age(postgres, follower)
    note(follower, until=2**62)
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    assert follower.epoch() == []
