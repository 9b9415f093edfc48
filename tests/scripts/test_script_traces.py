"""The context of a traced record stays with its rows, and the script does not see it."""

import json
from collections.abc import Callable

from tests.scripts.conftest import split

COLUMNS = {"x": "int32", "_traceparent": "string"}
ROWS = [{"x": 1, "_traceparent": "a"}, {"x": 2, "_traceparent": None}, {"x": 3, "_traceparent": "c"}]


def test_it_stays_with_rows_that_are_left_out_multiplied_or_rejected(results: Callable) -> None:
    text = """function invoke(row) {
      if (Object.keys(row).join() !== "x") throw new Error(Object.keys(row).join());
      if (row.x === 2) throw new Error("two");
      return row.x === 3 ? [row, {x: 4}] : row;
    }"""
    rows = results(text, ROWS, COLUMNS)
    good, (error,) = split(rows)
    assert good == [{"x": 1, "_traceparent": "a"}, {"x": 3, "_traceparent": "c"}, {"x": 4, "_traceparent": "c"}]
    assert error.startswith("Error: two")
    assert "_traceparent" not in rows[-1]["_reject"]["raw"]


def test_it_stays_where_an_array_leaves_a_row_out(results: Callable) -> None:
    rows = results("(row) => row.x === 1 ? [null] : [row]", ROWS, COLUMNS, isolate=False)
    assert rows == [{"x": 2, "_traceparent": None}, {"x": 3, "_traceparent": "c"}]


def test_a_dead_letter_is_the_row_that_failed_where_an_array_leaves_a_row_out(results: Callable) -> None:
    text = "(row) => row.x === 1 ? [null] : [{x: row.x, d: row.x === 2 ? '2026-02-30' : '2026-01-01'}]"
    rows = results(text, [{"x": x, "d": None} for x in (1, 2, 3)], {"x": "int32", "d": "date"})
    (reject,) = [row["_reject"] for row in rows if row["_reject"]]
    assert json.loads(reject["raw"])["x"] == 2


def test_in_a_function_of_batches_it_ends(results: Callable) -> None:
    assert results("(rows) => rows", ROWS, COLUMNS, mode="batch", isolate=False) == [{"x": x, "_traceparent": None} for x in (1, 2, 3)]
