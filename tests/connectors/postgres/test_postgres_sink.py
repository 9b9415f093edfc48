"""Rows in a table: appended, upserted, deleted, replaced; collapsed to the last row of each key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.postgres import Database

pytestmark = pytest.mark.spark

COLUMNS = "id: int64, v: string, _op: string, _seq: int64"


def changes(*rows: tuple[int, str | None, str, int]) -> list[dict[str, Any]]:
    return [{"id": id_, "v": v or "null", "_op": op, "_seq": seq} for id_, v, op, seq in rows]


def test_a_table_follows_its_changelog(postgres: Database, write: Callable[..., Any]) -> None:
    """Within an epoch and across epochs, by `_seq` and not by place."""
    schema = postgres.schema()
    first = changes((1, "a", "i", 1), (2, "b", "i", 2), (1, "c", "u", 4), (1, "late", "u", 3), (3, "x", "i", 5), (3, "x", "d", 6))
    second = changes((2, "b", "d", 7), (2, "again", "i", 8), (1, "c", "d", 9), (4, "d", "i", 10))
    report = write(schema, COLUMNS, [*first, *second], "primary_key: id")
    assert report.nodes["pg"].rows_in == 4
    assert postgres.rows(f"SELECT * FROM {schema}.t ORDER BY id") == [(2, "again"), (4, "d")]
    write(schema, COLUMNS, changes((2, "new", "u", 1), (4, "", "d", 2)), "primary_key: id", name="q")
    assert postgres.rows(f"SELECT id, v FROM {schema}.t ORDER BY id") == [(2, "new")]


def test_without_a_key_rows_are_added(postgres: Database, write: Callable[..., Any]) -> None:
    schema = postgres.schema()
    for name in ("p", "q"):
        write(schema, "id: int64, v: string", [{"id": 1, "v": "a"}, {"id": 1, "v": "a"}], name=name)
    assert postgres.rows(f"SELECT count(*) FROM {schema}.t") == [(4,)]


def test_a_stored_row_is_updated_only_where_it_should_be(postgres: Database, write: Callable[..., Any]) -> None:
    schema, columns = postgres.schema(), "id: int64, at: int64"
    postgres.run(f"CREATE TABLE {schema}.t (id bigint primary key, at bigint)", f"INSERT INTO {schema}.t VALUES (1, 5), (2, 5), (3, NULL)")
    rows = [{"id": 1, "at": 4}, {"id": 2, "at": 6}, {"id": 3, "at": 1}]
    write(schema, columns, rows, "primary_key: id, update_where: {at: '>'}")
    assert postgres.rows(f"SELECT * FROM {schema}.t ORDER BY id") == [(1, 5), (2, 6), (3, 1)]
    write(schema, columns, [{"id": 2, "at": 9}, {"id": 4, "at": 9}], "primary_key: id, on_conflict: nothing", name="q")
    assert postgres.rows(f"SELECT at FROM {schema}.t WHERE id IN (2, 4)") == [(6,), (9,)]


def test_deleted_rows_can_stay_marked(postgres: Database, write: Callable[..., Any]) -> None:
    schema, options = postgres.schema(), "primary_key: id, soft_delete: deleted_at"
    write(schema, COLUMNS, changes((1, "a", "i", 1), (2, "b", "i", 2)), options)
    write(schema, COLUMNS, changes((1, "", "d", 3), (2, "", "d", 4)), options, name="q")
    assert postgres.rows(f"SELECT id, v, deleted_at IS NOT NULL FROM {schema}.t ORDER BY id") == [(1, "a", True), (2, "b", True)]
    write(schema, COLUMNS, changes((2, "back", "i", 5)), options, name="r")
    assert postgres.rows(f"SELECT id FROM {schema}.t WHERE deleted_at IS NULL") == [(2,)]


def test_replace_puts_an_epoch_in_the_place_of_all(postgres: Database, write: Callable[..., Any]) -> None:
    schema = postgres.schema()
    write(schema, "id: int64", [{"id": 1}, {"id": 2}], "mode: replace")
    write(schema, "id: int64", [{"id": 3}], "mode: replace", name="q")
    assert postgres.rows(f"SELECT * FROM {schema}.t") == [(3,)]


def test_appending_a_changelog_keeps_what_happened(postgres: Database, write: Callable[..., Any]) -> None:
    schema = postgres.schema()
    write(schema, COLUMNS, changes((1, "a", "i", 1), (1, "a", "d", 2)), "mode: append")
    assert postgres.rows(f"SELECT id, _op FROM {schema}.t ORDER BY _seq") == [(1, "i"), (1, "d")]


def test_staged_rows_do_not_stay(postgres: Database, write: Callable[..., Any]) -> None:
    before = postgres.staged()  # of tests that kill
    write(postgres.schema(), "id: int64", [{"id": 1}])
    assert postgres.staged() == before


@pytest.mark.parametrize("mode", ["upsert", "replace"])
def test_of_plain_rows_with_one_key_the_last_counts(postgres: Database, write: Callable[..., Any], mode: str) -> None:
    """By the rows' order, or by `_seq`, which runs backwards here."""
    ordered, backwards = postgres.schema(), postgres.schema()
    rows: list[dict[str, Any]] = [{"id": n % 3, "v": n} for n in range(100)]
    write(ordered, "id: int64, v: int64", rows, f"primary_key: id, mode: {mode}")
    assert postgres.rows(f"SELECT * FROM {ordered}.t ORDER BY id") == [(0, 99), (1, 97), (2, 98)]
    numbered = [row | {"_seq": -row["v"]} for row in rows]
    write(backwards, "id: int64, v: int64, _seq: int64", numbered, f"primary_key: id, mode: {mode}", name="q")
    assert postgres.rows(f"SELECT id, v FROM {backwards}.t ORDER BY id") == [(0, 0), (1, 1), (2, 2)]
