"""What a function may return, and what becomes of it."""

from collections.abc import Callable

import pytest
from tests.scripts.conftest import split

COLUMNS = {"x": "int32", "t": "string"}
ROWS = [{"x": 1, "t": "a"}, {"x": 2, "t": "b"}, {"x": 3, "t": None}]


@pytest.mark.parametrize(
    ("text", "xs"),
    [
        ("function invoke(row) { return {...row, x: row.x * 10}; }", [10, 20, 30]),
        ("(row) => ({x: row.x + 1})", [2, 3, 4]),
        ("row => row.x > 1 ? row : null;", [2, 3]),
        ("function process(row) { return [row, null, row]; }", [1, 1, 2, 2, 3, 3]),
        ("const twice = (row) => [];", []),
        (
            "const STEP = {by: 5};\nconst add = (n) => n + STEP.by;\nexport default function invoke(row) { return {x: add(row.x)}; }",
            [6, 7, 8],
        ),
        ("function invoke(row) { return {x: row.x, t: undefined}; }", [1, 2, 3]),
    ],
    ids=["function", "arrow", "null", "array", "empty array", "helpers and constants", "undefined field"],
)
def test_rows_come_out(results: Callable, text: str, xs: list[int]) -> None:
    assert [row["x"] for row in results(text, ROWS, COLUMNS, isolate=False)] == xs


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("undefined", "returned undefined: return a row, or null to leave the row out"),
        ("5", "returned the number 5, expected an object"),
        ("[5]", "returned the number 5, expected an object"),
        ("{x: 'a'}", 'field `x`: expected an int32, got the string "a"'),
        ("{x: NaN}", "field `x`: expected an int32, got NaN"),
        ("{x: 1.5}", "field `x`: expected an int32, got 1.5"),
        ("{x: 2 ** 31}", "field `x`: expected an int32"),
        ("{x: 1, t: 2}", "field `t`: expected a string of Unicode text, got the number 2"),
        ("{x: 1, tt: 'a'}", "`tt` is not a field of the schema"),
        ("(async () => row)()", "`then`|returned a promise"),
        ("{then() {}, x: 1}", "returned a promise: a script is synchronous"),
        ("{x: 1, t: '\\ud800'}", "field `t`: expected a string of Unicode text"),
    ],
)
def test_a_wrong_result_is_an_error_of_its_row_only(results: Callable, returned: str, said: str) -> None:
    text = f"function invoke(row) {{ if (row.x === 2) return {returned}; return row; }}"
    good, errors = split(results(text, ROWS, COLUMNS))
    assert [row["x"] for row in good] == [1, 3]
    assert len(errors) == 1
    assert any(each in errors[0] for each in said.split("|"))
    assert "\n" not in errors[0] or "line 1" in errors[0]


def test_a_row_of_an_array_that_is_wrong_takes_the_others_along(results: Callable) -> None:
    """A row is one unit: half of its results would be neither done nor rejected."""
    good, errors = split(results("(row) => row.x === 2 ? [row, {x: 'no'}] : row", ROWS, COLUMNS))
    assert ([row["x"] for row in good], len(errors)) == ([1, 3], 1)


def test_an_exception_has_the_stack_in_the_user_s_lines(results: Callable) -> None:
    check = "function check(row) {\n  throw new RangeError('no ' + row.t);\n}"
    text = f"\n{check}\nfunction invoke(row) {{\n  return row.x === 2 ? check(row) : row;\n}}"
    _, (error,) = split(results(text, ROWS, COLUMNS))
    said, inner, outer, *_ = error.splitlines()
    assert said == "RangeError: no b"
    assert inner.startswith("    at check (line 3")
    assert outer.startswith("    at invoke (line 6")


def test_with_typescript_too(results: Callable) -> None:
    text = """interface Row {
  x: number;
}

type Other = string;
function invoke(row: Row): Row {

  // a comment
  if (row.x === 2) { throw new Error("two"); }
  return row as Row;
}"""
    _, (error,) = split(results(text, ROWS, COLUMNS, language="typescript"))
    assert error.splitlines()[1] == "    at invoke (line 9)"


def test_a_batch_at_once(results: Callable) -> None:
    text = "function invoke(rows) { return [{x: rows.length}, null, rows[0]]; }"
    assert [row["x"] for row in results(text, ROWS, COLUMNS, mode="batch", isolate=False)] == [3, 1]


def test_a_failing_batch_is_halved_until_the_row_is_found(results: Callable) -> None:
    text = "(rows) => rows.map((row) => { if (row.x === 2) throw new Error('two'); return row; })"
    good, errors = split(results(text, ROWS, COLUMNS, mode="batch"))
    assert [row["x"] for row in good] == [1, 3]
    assert [error.splitlines()[0] for error in errors] == ["Error: two"]


def test_batch_size_is_the_most_rows_of_an_array(results: Callable) -> None:
    rows = results(
        "(rows) => ({x: rows.length})".replace("({", "[{").replace("})", "}]"), ROWS, COLUMNS, mode="batch", batch_size=2, isolate=False
    )
    assert [row["x"] for row in rows] == [2, 1]
