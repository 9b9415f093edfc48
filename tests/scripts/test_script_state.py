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
        ("const re = RegExp('a', 'g');\nfunction f(row) { return row; }", False),
        ("const A = Object.freeze(make());\nfunction f(row) { return row; }", False),
        ("const o = {};\n{ let n = 0; o.next = () => ++n; }\nfunction invoke(row) { return {x: o.next()}; }", False),
        ("const o = {};\nif (true) { let n = 0; o.next = () => ++n; }\nfunction invoke(row) { return {x: o.next()}; }", False),
        ("const C = class { static #n = 0; static next() { return ++C.#n; } };\nfunction f(row) { return {x: C.next()}; }", False),
        ("const C = class { next() { let n = 0; return ++n; } };\nfunction f(row) { return row; }", True),
        ("const o = {next() { let n = 0; return ++n; }};\nfunction f(row) { return {x: o.next()}; }", True),
        ("const next = make``;\nfunction invoke(row) { return {x: next()}; }\nfunction make() { return () => 1; }", False),
        ("const text = `${make()}`;\nfunction invoke(row) { return row; }\nfunction make() { return 1; }", False),
        ("const A = 1, text = `a ${A}`;\nfunction invoke(row) { return row; }", True),
        ("const o = {let: 1, class: 2};\nfunction invoke(row) { return {x: o.class}; }", True),
        ("export { invoke };\nfunction invoke(row) { let n = 1; return row; }", True),
        ("(row) => { let n = 0; const re = /a/g; return {x: ++n}; }", True),
    ],
)
def test_what_can_keep_state_counts_as_varying(text: str, deterministic: bool) -> None:
    assert Script(script=text).deterministic is deterministic


def test_its_rows_are_held_where_they_are_watched() -> None:
    """They may not come out the same when a part of the epoch runs once more."""
    from types import SimpleNamespace

    from millstream.engine.epoch.frames import EpochFrames
    from millstream.plan.nodes import TransformNode

    step = TransformNode("step", Script(script="(row) => row"), ("above",))
    frames = SimpleNamespace(_plan=SimpleNamespace(functions=()), _lowering=SimpleNamespace(is_observed=lambda step: False))
    assert EpochFrames._is_foreign(frames, step)  # type: ignore[arg-type]  # what it needs of itself


def test_a_clock_varies() -> None:
    assert Script(script="(row) => row", allow=["clock"]).deterministic is False


def test_a_function_of_batches_varies() -> None:
    """A repeated epoch may have other batches."""
    assert Script(script="(rows) => [{x: rows.length}]", mode="batch").deterministic is False


def test_state_lasts_for_one_batch(runner: Callable) -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist(ROWS, pa.schema([("x", pa.int32())]))
    prepared = runner("let n = 0;\nfunction invoke(row) { n += row.x; return {x: n}; }", batch.schema, isolate=False)
    assert [result.to_pydict()["x"] for result in prepared.run([batch, batch])] == [[1, 3, 6], [1, 3, 6]]


LASTING = {
    "in a frozen constant": "const C = Object.freeze({seen: []});\nfunction invoke(row) { C.seen.push(1); return {x: C.seen.length}; }",
    "on a regular expression": "const re = /a/;\nfunction invoke(row) { re.n = (re.n || 0) + 1; return {x: re.n}; }",
    "in a regular expression": "const re = /a/;\nfunction invoke(row) { re.compile('b'); return row; }",
    "in an expression that was called for": "const re = RegExp('a', 'g');\n"
    "function invoke(row) { re.test('aa'); return {x: re.lastIndex}; }",
    "on a lone function": "(row) => { invoke.n = (invoke.n || 0) + 1; return {x: invoke.n}; }",
    "on a lone function with a name": "(function f(row) { f.n = (f.n || 0) + 1; return {x: f.n}; })",
    "on a getter": "const o = {get a() { return 1; }};\nconst get = (row) => Object.getOwnPropertyDescriptor(o, 'a').get;\n"
    "function invoke(row) { const g = get(); g.n = (g.n || 0) + 1; return {x: g.n}; }",
    "on a prototype": "const o = {__proto__: {}};\n"
    "function invoke(row) { const p = Object.getPrototypeOf(o); p.n = (p.n || 0) + 1; return {x: p.n}; }",
    "in a block": "const o = {};\n{ let n = 0; o.next = () => ++n; }\nfunction invoke(row) { return {x: o.next()}; }",
    "in a class": "const C = class { static #n = 0; static next() { return ++C.#n; } };\nfunction invoke(row) { return {x: C.next()}; }",
    "behind a tag": "function make() { let n = 0; return () => ++n; }\nconst next = make``;\nfunction invoke(row) { return {x: next()}; }",
    "in the last match": "(row) => { const b = RegExp.$1; /(.*)/.exec('5' + row.x); return {x: b ? Number(b) : -1}; }",
    "in a computed name": "let n = 0;\nclass C { [++n]() {} }\nfunction invoke(row) { return {x: ++n}; }",
}


@pytest.mark.parametrize("place", LASTING)
def test_nothing_lasts_longer_than_a_batch(runner: Callable, place: str) -> None:
    """Whatever the outline makes of the script."""
    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist(ROWS, pa.schema([("x", pa.int32())]))
    prepared = runner(LASTING[place], batch.schema)
    first, second, third = [
        [row for result in prepared.run(batches) for row in result.to_pylist()] for batches in ([batch], [batch], [batch])
    ]
    assert first == second == third


@pytest.mark.parametrize("place", LASTING)
def test_nothing_lasts_longer_than_a_row_in_a_script_that_does_not_vary(runner: Callable, place: str) -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist([{"x": 1}] * 3, pa.schema([("x", pa.int32())]))
    found = [[row["x"] for row in result.to_pylist()] for result in runner(LASTING[place], batch.schema).run([batch])]
    if Script(script=LASTING[place], language="javascript").deterministic:
        assert all(x in {None, -1} for xs in found for x in xs)


def test_a_regular_expression_still_works(results: Callable) -> None:
    text = """const RE = /(?<digit>[0-9])/;
    function invoke(row) {
      const name = `a${row.x}b${row.x}`;
      const found = [RE.test(name), name.replace(RE, "-"), name.match(RE).groups.digit, name.search(RE), name.split(RE).length];
      return {t: found.join()};
    }"""
    rows = results(text, ROWS[:2], COLUMNS, schema={"t": "string"}, isolate=False)
    assert [row["t"] for row in rows] == ["true,a-b1,1,1,5", "true,a-b2,2,1,5"]


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
