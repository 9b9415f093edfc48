"""On a changelog the op and the place stay with their rows, also where rows are left out."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.scripts.conftest import split

COLUMNS = {"id": "int32", "t": "string", "_op": "string", "_seq": "int64"}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "t": "a", "_op": "i", "_seq": 10},
    {"id": 2, "t": "b", "_op": "u", "_seq": 11},
    {"id": 3, "t": "c", "_op": "d", "_seq": 12},
]


def ops(rows: list[dict[str, Any]]) -> list[tuple[int, str, int]]:
    return [(row["id"], row["_op"], row["_seq"]) for row in rows]


@pytest.mark.parametrize("returned", ["row", "{...row}", "{id: row.id}", "[row]"])
def test_they_stay(results: Callable, returned: str) -> None:
    rows = results(f"(row) => ({returned})", ROWS, COLUMNS, schema={"id": "int32"}, isolate=False) if returned == "{id: row.id}" else None
    rows = rows or results(f"(row) => ({returned})", ROWS, COLUMNS, isolate=False)
    assert ops(rows) == [(1, "i", 10), (2, "u", 11), (3, "d", 12)]


def test_a_row_that_is_left_out_becomes_a_delete_unless_it_was_new(results: Callable) -> None:
    rows = results("(row) => null", ROWS, COLUMNS, key=("id",), isolate=False)
    assert ops(rows) == [(2, "d", 11), (3, "d", 12)]


def test_so_does_one_that_is_left_out_by_an_array(results: Callable) -> None:
    rows = results("(row) => row.id === 2 ? [null] : [row]", ROWS, COLUMNS, key=("id",), isolate=False)
    assert ops(rows) == [(1, "i", 10), (2, "d", 11), (3, "d", 12)]
    rows = results("(row) => row.id === 1 ? [null] : row", ROWS, COLUMNS, key=("id",), isolate=False)
    assert ops(rows) == [(2, "u", 11), (3, "d", 12)]


def test_without_a_key_it_is_refused(results: Callable) -> None:
    good, errors = split(results("(row) => null", ROWS, COLUMNS))
    assert good == []
    assert len(errors) == 2
    assert "no primary key" in errors[0]


def test_an_insert_may_become_several_rows_but_not_an_update(results: Callable) -> None:
    good, errors = split(results("(row) => [row, {...row, id: row.id + 10}]", ROWS, COLUMNS, key=("id",)))
    assert ops(good) == [(1, "i", 10), (11, "i", 10)]
    assert [error.split(":")[0] for error in errors] == ["returned 2 rows for an update or delete of a changelog"] * 2


def test_the_op_is_not_the_script_s_to_change(results: Callable) -> None:
    _, errors = split(results("(row) => ({...row, _op: 'd'})", ROWS[:1], COLUMNS))
    assert "changes `_op`" in errors[0]


def test_unless_the_schema_declares_it(results: Callable) -> None:
    rows = results("(row) => ({id: row.id, _op: 'd'})", ROWS, COLUMNS, schema={"id": "int32", "_op": "string"}, isolate=False)
    assert [row["_op"] for row in rows] == ["d", "d", "d"]


def test_the_place_stays_when_another_row_fails(results: Callable) -> None:
    good, errors = split(results("(row) => { if (row.id === 2) throw new Error('two'); return row; }", ROWS, COLUMNS))
    assert (ops(good), len(errors)) == ([(1, "i", 10), (3, "d", 12)], 1)


def test_a_function_of_batches_is_refused(runner: Callable) -> None:
    from millstream.errors import RunError
    from millstream.plan import types

    with pytest.raises(RunError, match="MS199"):
        runner("(rows) => rows", types.schema(COLUMNS), mode="batch")
