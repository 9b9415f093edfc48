"""Changes of a table come as rows with `_op` and `_seq`, in the order of their commits, after the rows that were there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.connectors.postgres_source.follower import Follower, code, ops
from tests.connectors.postgres_source.test_postgres_table_types import ROWS, check, make
from tests.servers.postgres import Database

from millstream.errors import RunError

Follow = Callable[..., Follower]


def test_rows_that_are_there_come_first_then_changes(postgres: Database, table: str, follow: Follow) -> None:
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    follower = follow(table)
    assert ops(follower.epoch()) == [("i", 1, "a"), ("i", 2, "b")]
    postgres.run(f"INSERT INTO {table} VALUES (3, 'c')", f"UPDATE {table} SET name = 'B' WHERE id = 2", f"DELETE FROM {table} WHERE id = 1")
    rows = follower.epoch()
    assert ops(rows) == [("i", 3, "c"), ("u", 2, "B"), ("d", 1, None)]
    assert [row["_seq"] for row in rows] == [2, 3, 4]
    assert follower.source.open(follower.context).key_columns() == ("id",)
    assert follower.epoch() == []


def test_rows_of_all_partitions_are_followed(postgres: Database, follow: Follow) -> None:
    name = f"{postgres.schema()}.t"
    postgres.run(f"CREATE TABLE {name} (id int PRIMARY KEY, name text) PARTITION BY RANGE (id)")
    postgres.run(f"CREATE TABLE {name}1 PARTITION OF {name} FOR VALUES FROM (0) TO (10)", f"INSERT INTO {name} VALUES (1, 'a')")
    follower = follow(name)
    assert ops(follower.epoch()) == [("i", 1, "a")]
    postgres.run(f"CREATE TABLE {name}2 PARTITION OF {name} FOR VALUES FROM (10) TO (20)", f"INSERT INTO {name} VALUES (2, 'b'), (12, 'c')")
    postgres.run(f"UPDATE {name} SET id = id + 10 WHERE id = 1")
    assert ops(follower.epoch()) == [("i", 2, "b"), ("i", 12, "c"), ("d", 1, None), ("i", 11, "a")]


def test_an_update_of_the_key_is_a_delete_and_an_insert(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table, snapshot="never")
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')", f"UPDATE {table} SET id = id + 10, name = name || '!'")
    postgres.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"UPDATE {table} SET id = id - 10 WHERE id = 11", f"DELETE FROM {table}")
    assert ops(follower.epoch()) == [
        *(("i", 1, "a"), ("i", 2, "b")),
        *(("d", 1, None), ("i", 11, "a!"), ("d", 2, None), ("i", 12, "b!")),
        *(("d", 11, "a!"), ("i", 1, "a!")),
        *(("d", 12, "b!"), ("d", 1, "a!")),
    ]


def test_every_type_is_read_from_changes_as_from_the_table(postgres: Database, follow: Follow, tmp_path: Path) -> None:
    name = make(postgres)
    follower = follow(f"{name}.t")
    follower.epoch()
    postgres.run(ROWS.format(name))
    changes = follower.epoch()
    again = follow(f"{name}.t", tmp_path / "again").epoch()
    assert repr([{**row, "_seq": 0} for row in changes]) == repr([{**row, "_seq": 0} for row in again])
    for row in changes:
        row["moment"] = row["moment"] and row["moment"].replace(tzinfo=None)
    check(changes)


def test_transactions_come_whole_and_in_the_order_of_their_commits(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    with psycopg.connect(postgres.address.text) as early, psycopg.connect(postgres.address.text) as late:
        early.execute(f"INSERT INTO {table} VALUES (1, 'early')")
        late.execute(f"INSERT INTO {table} VALUES (2, 'late')")
        late.commit()
        assert ops(follower.epoch()) == [("i", 2, "late")]
        early.execute(f"INSERT INTO {table} VALUES (3, 'early')")
        early.rollback()
        early.execute(f"INSERT INTO {table} SELECT n, 'many' FROM generate_series(10, 30009) n")
        assert follower.epoch() == []
    assert len(follower.epoch()) == 30000


def test_large_values_that_did_not_change_are_known_with_full_identity_only(postgres: Database, table: str, follow: Follow) -> None:
    postgres.run(f"ALTER TABLE {table} ADD COLUMN body text", f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTERNAL")
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a', repeat('x', 10000))", f"UPDATE {table} SET name = 'b'")
    with pytest.raises(RunError) as raised:
        follower.epoch()
    assert code(raised) == "MS125" and "REPLICA IDENTITY FULL" in raised.value.diagnostics[0].help
    lenient = follow(table, after=follower, unchanged="null")
    assert ops(lenient.epoch()) == [("i", 1, "a", "x" * 10000), ("u", 1, "b", None)]
    postgres.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL", f"UPDATE {table} SET name = 'c'", f"UPDATE {table} SET body = NULL")
    strict = follow(table, after=lenient)
    assert ops(strict.epoch()) == [("u", 1, "c", "x" * 10000), ("u", 1, "c", None)]


def test_a_truncated_table_stops_or_is_passed_over(postgres: Database, table: str, follow: Follow) -> None:
    follower = follow(table)
    follower.epoch()
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')", f"TRUNCATE {table}", f"INSERT INTO {table} VALUES (2, 'b')")
    with pytest.raises(RunError) as raised:
        follower.epoch()
    assert code(raised) == "MS127"
    again = follow(table, after=follower, truncate="ignore")
    assert ops(again.epoch()) == [("i", 1, "a"), ("i", 2, "b")]
