"""The statements of a merge on their own: what a row's operation does to the table, for each kind of table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from tests.servers.postgres import Database

from millstream.connectors.postgres.write.columns import StagedColumn
from millstream.connectors.postgres.write.merge import Merge
from millstream.connectors.postgres.write.target import Wanted, prepare_table

ID, V = StagedColumn("id", "bigint", "bigint"), StagedColumn("v", "text", "text")
Merging = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def merge(postgres: Database) -> Merging:
    """Merge staged rows `(id, v, _op)`, each epoch with its time; the table afterwards."""
    schema = postgres.schema()

    def go(*rows: str, table: str = "id bigint PRIMARY KEY, v text", time: str = "2024-01-01", **options: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(postgres.address.text) as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {schema}.t ({table})")
            connection.execute("CREATE TEMPORARY TABLE staged (id bigint, v text, _op text) ON COMMIT DROP")
            connection.execute(f"INSERT INTO staged VALUES {', '.join(rows)}")
            columns = (ID, V) if " v " in table else (ID,)
            target = prepare_table(connection, Wanted(schema, "t", ("id",), create=False, evolve="fail"), columns, held=False)
            for statement in Merge(target, columns, "upsert", "_op", time=time, **options).statements(["staged"]):
                connection.execute(statement)
            return connection.execute(f"SELECT * FROM {schema}.t ORDER BY id").fetchall()

    return go


def test_a_row_without_an_operation_is_one_that_is_there(merge: Merging) -> None:
    assert merge("(1, 'a', 'i')", "(2, 'b', NULL)", "(3, 'c', 'd')") == [(1, "a"), (2, "b")]
    assert merge("(1, 'new', NULL)", "(2, NULL, 'd')") == [(1, "new")]


def test_a_mark_says_when_the_row_was_first_deleted(merge: Merging) -> None:
    table = "id bigint PRIMARY KEY, v text, gone timestamptz"
    merge("(1, 'a', 'i')", table=table, soft_delete="gone")
    ((_, value, first),) = merge("(1, NULL, 'd')", table=table, soft_delete="gone", time="2024-01-02")
    assert (value, first.year) == ("a", 2024)
    assert merge("(1, NULL, 'd')", table=table, soft_delete="gone", time="2025-01-01") == [(1, "a", first)]
    assert merge("(1, 'b', 'u')", table=table, soft_delete="gone", time="2025-01-01") == [(1, "b", None)]


def test_a_mark_can_be_true_or_false(merge: Merging) -> None:
    table = "id bigint PRIMARY KEY, v text, gone boolean"
    merge("(1, 'a', 'i')", "(2, 'b', 'i')", table=table, soft_delete="gone")
    assert merge("(1, NULL, 'd')", table=table, soft_delete="gone") == [(1, "a", True), (2, "b", None)]
    assert merge("(1, 'c', 'i')", "(2, 'd', 'u')", table=table, soft_delete="gone") == [(1, "c", False), (2, "d", False)]


def test_a_table_of_keys_alone(merge: Merging) -> None:
    table = "id bigint PRIMARY KEY"
    assert merge("(1, NULL, 'i')", "(2, NULL, 'i')", table=table) == [(1,), (2,)]
    assert merge("(1, NULL, 'u')", "(2, NULL, 'd')", table=table) == [(1,)]


@pytest.mark.parametrize("kind", ["char(5)", "varchar(5)", "name"])
def test_a_text_is_whole_or_refused(merge: Merging, kind: str) -> None:
    assert merge("(1, 'abcde', 'i')", table=f"id bigint PRIMARY KEY, v {kind} ") == [(1, "abcde")]
    if kind != "name":  # a type of Postgres' own, which cuts at 63 bytes by itself
        with pytest.raises(psycopg.errors.StringDataRightTruncation):
            merge("(1, 'abcdef', 'i')")
