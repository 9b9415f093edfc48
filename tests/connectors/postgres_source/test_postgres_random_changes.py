"""Random changes in random transactions: what comes out, applied in order, is the table."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.connectors.postgres_source.follower import Follower
from tests.servers.postgres import Database

Follow = Callable[..., Follower]
Rows = list[dict[str, Any]]


def statement(dice: random.Random, table: str) -> str:
    """One change of one row or of many."""
    key, value = dice.randrange(60), dice.choice(["NULL", "''", "'a'", "'it''s'", "repeat('long', 900)", "E'\\\\\\n'"])
    tags = dice.choice(["NULL", "'{}'", "'{1,NULL}'", "'{7}'"])
    kind = dice.choice(["insert", "insert", "update", "many", "move", "delete"])
    if kind == "insert":
        return f"INSERT INTO {table} VALUES ({key}, {value}, {tags}) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
    if kind == "update":
        return f"UPDATE {table} SET tags = {tags} WHERE id = {key}"
    if kind == "many":
        return f"UPDATE {table} SET name = {value} WHERE id % 7 = {key % 7}"
    if kind == "move":
        return f"UPDATE {table} SET id = {1000 + key} WHERE id = {key} AND NOT EXISTS (SELECT FROM {table} WHERE id = {1000 + key})"
    return f"DELETE FROM {table} WHERE id = {dice.choice([key, 1000 + key])}"


def applied(rows: Rows) -> dict[int, tuple[Any, ...]]:
    """The table that changes make, strictly: an insert of what is there, or a change of what is not, is wrong."""
    held: dict[int, tuple[Any, ...]] = {}
    for row in sorted(rows, key=lambda row: row["_seq"]):
        assert (row["id"] in held) is (row["_op"] != "i"), row
        if row["_op"] == "d":
            del held[row["id"]]
        else:
            held[row["id"]] = (row["name"], row["tags"])
    return held


@pytest.mark.parametrize("seed", range(4))
def test_changes_make_the_table(postgres: Database, table: str, follow: Follow, seed: int) -> None:
    dice = random.Random(seed)
    postgres.run(f"ALTER TABLE {table} ADD COLUMN tags int[]", f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    postgres.run(*(statement(dice, table) for _ in range(30)))
    follower = follow(table)
    rows: Rows = []
    with psycopg.connect(postgres.address.text) as connection:
        for _ in range(40):
            for _ in range(dice.randrange(1, 12)):
                with connection.transaction(force_rollback=dice.random() < 0.2):
                    connection.execute(statement(dice, table))
            if dice.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()
            if dice.random() < 0.3:
                rows += follower.epoch()
            if dice.random() < 0.1:
                follower.epoch(commit=False)
                follower = follow(table, after=follower)
    rows += follower.epoch()
    now = {row[0]: (row[1], row[2]) for row in postgres.rows(f"SELECT id, name, tags FROM {table}")}
    assert applied(rows) == now
    assert [row["_seq"] for row in rows] == list(range(len(rows)))
