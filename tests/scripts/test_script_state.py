"""Whether the same rows give the same results: what varies is absent, or the node says that it varies."""

from collections.abc import Callable

import pytest
from tests.scripts.conftest import split

from millstream.transforms.script import Script

ROWS = [{"x": 1}, {"x": 2}, {"x": 3}]
COLUMNS = {"x": "int32"}


@pytest.mark.parametrize(
    ("text", "deterministic"),
    [
        ("function invoke(row) { let n = 0; n++; return {x: n}; }", True),
        ("const RATE = 3, NAMES = {a: [1]};\nconst f = (row) => ({x: RATE});", True),
        ("enum Kind { A, B }\nfunction invoke(row) { return {x: Kind.B}; }", True),
        ("const big = BigInt(5), re = /a/;\nfunction f(row) { return row; }", True),
        ("let n = 0;\nfunction invoke(row) { return {x: n++}; }", False),
        ("const re = /a/g;\nfunction f(row) { return row; }", False),
        ("function f(row) { const re = /a/g; return row; }", True),
        ("var n = 0;\nfunction invoke(row) { return {x: n++}; }", False),
        ("const seen = new Set();\nfunction invoke(row) { return seen.has(row.x) ? null : row; }", False),
        ("const next = (() => { let n = 0; return () => n++; })();\nfunction invoke(row) { return {x: next()}; }", False),
        ("class Count { static n = 0 }\nfunction invoke(row) { return {x: Count.n++}; }", False),
        ("function make() { const made = {n: 0}; return made; }\nconst made = make();\nfunction invoke(row) { return row; }", False),
    ],
)
def test_what_can_keep_state_counts_as_varying(text: str, deterministic: bool) -> None:
    assert Script(script=text).deterministic is deterministic


def test_a_clock_varies() -> None:
    assert Script(script="(row) => row", allow=["clock"]).deterministic is False


def test_state_lasts_for_one_batch(runner: Callable) -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist(ROWS, pa.schema([("x", pa.int32())]))
    prepared = runner("let n = 0;\nfunction invoke(row) { n += row.x; return {x: n}; }", batch.schema, isolate=False)
    assert [result.to_pydict()["x"] for result in prepared.run([batch, batch])] == [[1, 3, 6], [1, 3, 6]]


@pytest.mark.parametrize("change", ["TABLE.a = 2", "TABLE.inner.push(1)", "invoke.count = 1", "helper.n = 1", "delete TABLE.a"])
def test_constants_and_functions_are_frozen(results: Callable, change: str) -> None:
    text = f"const TABLE = {{a: 1, inner: []}};\nfunction helper() {{}}\nfunction invoke(row) {{ {change}; return row; }}"
    _, errors = split(results(text, ROWS[:1], COLUMNS))
    assert errors[0].startswith("TypeError")


@pytest.mark.parametrize("read", ["Date.now()", "new Date().getTime()", "Number(Date())"])
def test_there_is_no_clock(results: Callable, read: str) -> None:
    _, errors = split(results(f"(row) => ({{x: {read} % 1000}})", ROWS[:1], COLUMNS))
    assert "TypeError" in errors[0]


@pytest.mark.parametrize(
    "read",
    [
        "Object.getPrototypeOf(Date).now()",
        "new (Object.getPrototypeOf(Date))().getTime()",
        "new (class extends Date { constructor() { super(); } })().getTime()",
        "new Date(0).constructor.now()",
        "Reflect.construct(Date, []).getTime()",
        "Reflect.construct(Object.getPrototypeOf(Date), [], Date).getTime()",
    ],
)
def test_nor_is_there_one_along_the_prototypes(results: Callable, read: str) -> None:
    _, errors = split(results(f"(row) => ({{x: {read} / 1000 | 0}})", ROWS[:1], COLUMNS))
    assert "TypeError" in errors[0]


def test_classes_of_dates_work(results: Callable) -> None:
    text = """class Day extends Date {}
    function invoke(row) {
      const day = new Day("2026-01-02T00:00:00Z");
      return {x: day.getUTCDate() + Number(day instanceof Day) + Date.UTC(1970, 0, 1) + Date.parse("1970-01-01") + Date.length};
    }"""
    assert results(text, ROWS[:1], COLUMNS, isolate=False) == [{"x": 10}]


def test_unless_it_is_allowed(results: Callable) -> None:
    rows = results("(row) => ({x: Math.floor(Date.now() / 1e9)})", ROWS[:1], COLUMNS, allow=["clock"], isolate=False)
    assert rows[0]["x"] > 1700


def test_dates_that_are_given_can_be_computed_with(results: Callable) -> None:
    text = "(row) => ({x: new Date('2026-01-02T00:00:00.000001Z').getUTCDate() + (new Date(0) instanceof Date ? 1 : 0)})"
    assert results(text, ROWS[:1], COLUMNS, isolate=False) == [{"x": 3}]
