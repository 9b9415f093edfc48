"""Scripts that attack: contained, the other rows go on, the worker's memory stays bounded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.scripts.conftest import split

COLUMNS = {"x": "int32", "t": "string"}
ROWS = [{"x": x, "t": "a"} for x in range(7)]
LIMITS = {
    "an endless loop": ("for (;;) {}", "within 0.5 s"),
    "a loop in a built-in": ("[].indexOf.call({length: 2 ** 53 - 1}, 1)", "within 0.5 s"),
    "a slow regular expression": ("/(a+)+$/.test('a'.repeat(60) + 'b')", "within 0.5 s"),
    "a heap bomb": ("const all = []; for (;;) all.push({a: [1, 2, 3], b: 'x'.repeat(10)})", "64 MB|within 0.5 s"),
    "array buffers": ("const all = []; for (;;) all.push(new Uint8Array(1e7).fill(1))", "64 MB|memory|allocation|within 0.5 s|buffer"),
    "deep recursion": ("(function deep(n) { return deep(n + 1) + 1; })(0)", "too deeply|call stack"),
    "deep JSON": ("JSON.parse('['.repeat(1e6))", "too deeply|stack|JSON|memory"),
    "a giant string": ("let s = 'x'; for (;;) s += s", "string|memory"),
    "a giant result": ("return {x: 1, t: 'x'.repeat(2 ** 28)}", "memory|64 MB|string"),
    "a getter that loops": ("return {get x() { for (;;) {} }}", "within 0.5 s"),
    "a proxy that loops": ("return new Proxy({}, {ownKeys() { for (;;) {} }, get() { for (;;) {} }})", "within 0.5 s"),
    "an error that loops": ("throw {get name() { for (;;) {} }, get message() { for (;;) {} }, toJSON() { for (;;) {} }}", "within 0.5 s"),
}


@pytest.mark.parametrize("attack", LIMITS, ids=str)
def test_only_the_offending_rows_are_rejected(results: Callable, attack: str) -> None:
    code, said = LIMITS[attack]
    text = f"function invoke(row) {{ if (row.x === 2 || row.x === 5) {{ {code}; }} return row; }}"
    good, errors = split(results(text, ROWS, COLUMNS))
    assert [row["x"] for row in good] == [0, 1, 3, 4, 6]
    assert len(errors) == 2
    assert all(any(each in error for each in said.split("|")) for error in errors), errors


@pytest.mark.parametrize("attack", ["an endless loop", "a heap bomb", "deep recursion"])
def test_the_next_batch_is_fine(runner: Callable, attack: str) -> None:
    import pyarrow as pa

    from millstream.plan import types

    text = f"function invoke(row) {{ if (row.x === 2) {{ {LIMITS[attack][0]}; }} return row; }}"
    batch = pa.RecordBatch.from_pylist(ROWS, types.schema(COLUMNS))
    prepared = runner(text, batch.schema)
    for _ in range(2):
        counts = [result.num_rows for result in prepared.run([batch, batch.slice(3)])]
        assert sum(counts) == 11


def test_without_isolation_it_is_the_end(results: Callable) -> None:
    """The control: the limit itself is an error, and nothing goes on in silence."""
    with pytest.raises(Exception, match=r"within 0\.5 s") as failed:
        results("function invoke(row) { for (;;) {} }", ROWS, COLUMNS, isolate=False)
    assert any("MS195" in note for note in failed.value.__notes__)


def held(engine: str) -> int:
    """The memory of this process, in which QuickJS runs, or of its children that run Deno."""
    process, total = psutil.Process(os.getpid()), 0
    for each in [process] if engine == "quickjs" else process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended since
            total += each.memory_info().rss if engine == "quickjs" or "deno" in each.name() else 0
    return total


def test_memory_stays_bounded(runner: Callable, engine: str) -> None:
    import pyarrow as pa

    from millstream.plan import types

    bomb = "function invoke(row) { const all = []; for (;;) all.push(new Uint8Array(1e6).fill(7)); }"
    batch = pa.RecordBatch.from_pylist(ROWS, types.schema(COLUMNS))
    before, most = held(engine), 0
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(lambda: list(runner(bomb, batch.schema).run([batch] * 3)))
        while not work.done():
            most = max(most, held(engine))
            time.sleep(0.01)
    assert all(result.column("_reject").null_count == 0 for result in work.result() if result.num_rows)
    assert most - before < 500 << 20


def test_ten_megabytes_of_text_pass(results: Callable) -> None:
    long = "ä" * 5_000_000
    rows = [{"x": 1, "t": long}, {"x": 2, "t": "short"}]
    good, errors = split(results("(row) => row", rows, COLUMNS, memory="256MB", timeout="20s"))
    assert (len(good[0]["t"]), good[1]["t"], errors) == (5_000_000, "short", [])


POLLUTION = [
    "Object.prototype.t = 'evil'",
    "Array.prototype.push = () => 0",
    "Array.prototype[0] = 'evil'",
    "Map.prototype.set = null",
    "JSON.stringify = () => 'evil'",
    "globalThis.BigInt = () => 1n",
    "globalThis.evil = 1",
    "Object.defineProperty(Object.prototype, 'x', {get() { return 99; }})",
    "Object.setPrototypeOf(Object.prototype, {})",
    "String.prototype.isWellFormed = () => false",
    "row.__proto__.t = 'evil'",
    "(function () {}).constructor.prototype.call = null",
    "Object.setPrototypeOf(Array.prototype, null)",
    "[].values().__proto__.next = () => ({done: true})",
    "Error.prototype.name = 'evil'",
]


@pytest.mark.parametrize("attack", POLLUTION)
def test_what_other_rows_rely_on_cannot_be_changed(results: Callable, attack: str) -> None:
    text = f"function invoke(row) {{ if (row.x === 0) {{ {attack}; }} return {{x: row.x}}; }}"
    good, errors = split(results(text, ROWS, COLUMNS))
    assert [(row["x"], row["t"]) for row in good] == [(x, None) for x in range(1, 7)]
    assert len(errors) == 1
    assert "TypeError" in errors[0]


ABSENT = [
    *("eval", "Function", "Deno", "process", "require", "fetch", "WebAssembly", "setTimeout", "queueMicrotask", "performance", "Worker"),
    *(
        "Promise",
        "WeakRef",
        "FinalizationRegistry",
        "SharedArrayBuffer",
        "Atomics",
        "Intl",
        "crypto",
        "localStorage",
        "navigator",
        "Math.random",
    ),
]


@pytest.mark.parametrize("name", ABSENT)
def test_it_is_not_there(results: Callable, name: str) -> None:
    (row,) = results(f"(row) => ({{t: typeof {name}}})", ROWS[:1], COLUMNS, isolate=False)
    assert row["t"] == "undefined"


FROM_TEXT = [
    "(function () {}).constructor('return 1')()",
    "(() => 1).constructor('return globalThis')()",
    "(async () => 1).constructor('return 1')()",
    "(function* () {}).constructor('yield 1')().next()",
    "Object.constructor('return 1')()",
    "Object.getPrototypeOf(async function* () {}).constructor('yield 1')()",
    "globalThis.constructor.constructor('return 1')()",
    "Reflect.construct((() => 1).constructor, ['return 1'])()",
]


@pytest.mark.parametrize("attack", FROM_TEXT)
def test_code_is_not_made_from_text(results: Callable, attack: str) -> None:
    _, errors = split(results(f"function invoke(row) {{ {attack}; return row; }}", ROWS[:1], COLUMNS))
    assert "is not available" in errors[0]


def test_files_of_the_worker_are_out_of_reach(results: Callable, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    text = f"""function invoke(row) {{
      const found = [];
      for (const name of ["Deno", "process", "std", "os"]) if (globalThis[name]) found.push(name);
      return {{x: 1, t: found.join() + String(globalThis["{tmp_path}/secret.txt"])}};
    }}"""
    assert [row["t"] for row in results(text, ROWS[:1], COLUMNS, isolate=False)] == ["undefined"]


def test_a_getter_that_throws_is_an_error_of_its_row(results: Callable) -> None:
    good, errors = split(results("(row) => row.x === 1 ? {get x() { throw new Error('got'); }} : row", ROWS, COLUMNS))
    assert ([row["x"] for row in good], [error.splitlines()[0] for error in errors]) == ([0, 2, 3, 4, 5, 6], ["Error: got"])
    assert errors[0].count("    at ") == 1


def test_a_proxy_is_read_like_an_object(results: Callable) -> None:
    rows = results(
        "(row) => new Proxy(row, {get: (target, name) => name === 't' ? 'seen' : target[name]})", ROWS[:1], COLUMNS, isolate=False
    )
    assert rows == [{"x": 0, "t": "seen"}]


def test_error_classes_and_own_fields_work_although_prototypes_are_frozen(results: Callable) -> None:
    text = """class Refused extends Error { constructor(text) { super(text); this.name = "Refused"; } }
    function invoke(row) { const made = {}; made.constructor = 1; made.toString = () => "made"; throw new Refused(`${made}`); }"""
    _, errors = split(results(text, ROWS[:1], COLUMNS))
    assert errors[0].splitlines()[0] == "Refused: made"


@pytest.mark.parametrize("engine", ["quickjs"], indirect=True)
def test_code_around_the_function_has_a_limit_too(results: Callable) -> None:
    with pytest.raises(Exception, match="code around the function meets the limit of time") as failed:
        results("for (;;) {}\nfunction invoke(row) { return row; }", ROWS, COLUMNS)
    assert any("MS192" in note for note in failed.value.__notes__)


def test_code_around_the_function_that_fails_is_the_end(results: Callable) -> None:
    """No row is at fault: none is rejected."""
    with pytest.raises(Exception, match="of null") as failed:
        results("const A = null;\nconst B = A.length;\nfunction invoke(row) { return row; }", ROWS, COLUMNS)
    assert any("MS192" in note for note in failed.value.__notes__)


@pytest.mark.parametrize("memory", ["1MB", "16GB"])
def test_memory_that_an_engine_cannot_have_is_brought_into_range(results: Callable, memory: str) -> None:
    assert len(results("(row) => row", ROWS, COLUMNS, memory=memory, isolate=False)) == 7


LEAVING = """function invoke(row) { return row; }
return {invoke, constants: []}; });
globalThis.left = [typeof Deno, typeof Math.random, typeof fetch].join();
(function () { function invoke(row) { return {t: globalThis.left}; }"""


def test_a_text_does_not_leave_its_function(results: Callable) -> None:
    """It would compile: it closes the function that stands around it, and opens another one."""
    with pytest.raises(Exception, match="cannot be parsed"):
        results(LEAVING, ROWS[:1], COLUMNS)


def test_a_text_of_one_function_does_not_leave_it_either(results: Callable) -> None:
    text = "(row) => row); return {invoke, constants: []}; }); globalThis.left = 1; (function () { const invoke = ((row) => row"
    with pytest.raises(Exception, match="cannot be parsed"):
        results(text, ROWS[:1], COLUMNS)


def test_a_text_that_leaves_its_function_finds_the_sandbox_closed(runner: Callable) -> None:
    """The second lock: here the text gets past the check."""
    import dataclasses
    import json

    import pyarrow as pa

    batch = pa.RecordBatch.from_pylist([{"t": "a"}], pa.schema([("t", pa.string())]))
    prepared = runner("(row) => row", batch.schema, isolate=False)
    open_ = "globalThis.left = 1; let found = [typeof Deno, typeof Math.random];"
    source = open_ + "(function () { return {invoke: (row) => ({t: [...found, globalThis.left].join()}), constants: []}; })"
    options = json.dumps({**json.loads(prepared.spec.options), "source": source})
    changed = dataclasses.replace(prepared, spec=dataclasses.replace(prepared.spec, options=options))
    (row,) = [row for result in changed.run([batch]) for row in result.to_pylist()]
    assert row == {"t": "undefined,undefined,"}
