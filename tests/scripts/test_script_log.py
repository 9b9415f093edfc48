"""What a script says with `console` goes to the worker's standard error, with the node's name, and not without end."""

from collections.abc import Callable

import pytest

COLUMNS = {"x": "int32"}


def test_lines_have_the_node_s_name(results: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    results("(row) => { console.log('row', row, 5n, [1]); console.warn('careful'); return row; }", [{"x": 1}], COLUMNS, isolate=False)
    said = capsys.readouterr().err.splitlines()
    assert said == ['info: script `step`: row {"x":1} 5n [1]', "warning: script `step`: careful"]


def test_they_are_limited(results: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    text = "(row) => { for (let i = 0; i < 1000; i++) console.log('x'.repeat(10000)); return row; }"
    assert len(results(text, [{"x": 1}] * 5, COLUMNS, isolate=False, timeout="20s")) == 5
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 51
    assert all(len(line) < 1100 for line in said)
    assert said[-1].endswith("4950 more lines are left out")


def test_secrets_are_masked(results: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    text = "(row) => { console.log('it is hunter2hunter2'); throw new Error('it is hunter2hunter2'); }"
    (row,) = results(text, [{"x": 1}], COLUMNS, hidden=("hunter2hunter2",))
    assert "hunter2" not in capsys.readouterr().err + row["_reject"]["error"]
    assert "***" in row["_reject"]["error"]


def test_a_task_has_a_limit_too(runner: Callable, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"x": list(range(40))}, schema=pa.schema([("x", pa.int32())]))
    list(runner("(row) => { console.log(row.x); return row; }", batch.schema, isolate=False).run([batch] * 10))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 201
    assert said[-1].endswith("all further lines of this task are left out")
