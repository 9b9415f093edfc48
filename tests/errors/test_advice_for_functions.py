"""Advice for a function that failed fits the cause: `on_error` only where a row can be at fault."""

from __future__ import annotations

import pytest

from millstream.engine.failures import Translator
from millstream.errors import Diagnostic
from millstream.secrets import Redactor
from millstream.spec.loader import loads
from millstream.worker import marks

PIPELINE = """
functions: {f: {function: 'code.py:f', returns: int64}}
sources: {rows: {type: memory, rows: [{id: 1}]}}
transforms:
  step: {type: python, from: rows, function: 'code.py:go', schema: {id: int64}}
  q: {type: sql, sql: SELECT f(id) AS id FROM step}
sinks: {out: {type: print, from: q}}
"""
FRAME = 'Traceback (most recent call last):\n  File "/p/code.py", line 8, in go\n    return wrong\n'


def told(exception: str, *notes: str) -> Diagnostic:
    topology = loads(PIPELINE).topology
    assert topology is not None
    error = RuntimeError("\n".join([f"{FRAME}{exception}", *notes]))
    (found,) = Translator(topology.nodes, "p", Redactor([])).translate(error, "step").diagnostics
    return found


@pytest.mark.parametrize(
    ("exception", "of_a_row"),
    [
        ("TypeError: go() missing 1 required positional argument: 'x'", False),
        ("AttributeError: 'RecordBatch' object has no attribute 'colum'", False),
        ("NameError: name 'np' is not defined", False),
        ("ModuleNotFoundError: No module named 'numpi'", False),
        ("TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'", True),
        ("ValueError: two is too much", True),
        ("KeyError: 'x'", True),
    ],
)
def test_a_function_that_raises(exception: str, of_a_row: bool) -> None:
    node = told(exception, marks.write(marks.NODE, "step"))
    assert node.code == "MS063" and node.help.startswith("correct the function at /p/code.py:8")
    assert ("on_error" in node.help) == of_a_row
    called = told(exception, marks.write(marks.FUNCTION, "f"))
    assert called.code == "MS063" and called.help.startswith("correct the function at /p/code.py:8")
    assert ("return null" in called.help) == of_a_row and "on_error" not in called.help


@pytest.mark.parametrize(
    ("exception", "of_a_row"),
    [
        ("millstream.worker.batches.WrongResultError: expected a RecordBatch, got int", False),
        ("millstream.worker.batches.WrongValueError: expected `id` as int64, got string: 'x'", True),
    ],
)
def test_a_function_that_returns_something_else(exception: str, of_a_row: bool) -> None:
    found = told(exception, marks.write(marks.NODE, "step"), marks.write(marks.WRONG_SCHEMA, exception.split(": ", 1)[1]))
    assert found.code == "MS064" and found.help.startswith("let `code.py:go` return what is declared, or correct `schema`")
    assert ("on_error" in found.help) == of_a_row
