"""A function that SQL calls, and that raises or returns something else: its name, the node, the line of the user's code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.errors import Diagnostic, MillstreamError

pytestmark = pytest.mark.spark
TEXT = """
functions: {f: {function: code.py:FUNCTION, returns: int64}}
sources:
  rows: {type: memory, rows: [{id: 1}, {id: 2}, {id: 3}]}
transforms:
  step:
    type: sql
    sql: SELECT f(id) AS id FROM rows
sinks:
  out: {type: memory, from: step}
"""
CODE = """
import os
import pyarrow as pa

def raises(ids):
    if 2 in ids.to_pylist():
        raise ValueError("two is too much")
    return ids

def too_short(ids):
    return ids.slice(1)

def wrong_type(ids):
    return pa.array(["x"] * len(ids))

def not_an_array(ids):
    return 42

def takes_two(a, b):
    return a
"""


def failure(pipeline: Callable, run: Callable, function: str) -> Diagnostic:
    Path("code.py").write_text(CODE)
    with pytest.raises(MillstreamError) as failed:
        run(pipeline(TEXT.replace("FUNCTION", function)))
    (error,) = failed.value.diagnostics
    return error


def test_one_that_raises_is_shown_with_its_own_line(pipeline: Callable, run: Callable) -> None:
    error = failure(pipeline, run, "raises")
    assert (error.code, error.span.line) == ("MS063", 8)
    assert error.message == "function `f`, called by `step`, raised ValueError: two is too much"
    assert "code.py:7 in raises" in error.detail


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("too_short", "expected 3 values, one per row, got 2"),
        ("wrong_type", "expected int64, got string"),
        ("not_an_array", "expected a pyarrow Array, got int"),
    ],
)
def test_one_that_returns_something_else(pipeline: Callable, run: Callable, function: str, says: str) -> None:
    error = failure(pipeline, run, function)
    assert (error.code, error.span.line) == ("MS064", 8)
    assert "function `f`, called by `step`," in error.message
    assert says in error.message


def test_one_that_is_called_with_the_wrong_number_of_arguments(pipeline: Callable, run: Callable) -> None:
    error = failure(pipeline, run, "takes_two")
    assert error.code == "MS063"
    assert "missing 1 required positional argument" in error.message


@pytest.mark.parametrize(("name", "code"), [("lenght", "MS159"), ("g", "MS066")])
def test_one_that_nobody_has_is_told_at_its_line(pipeline: Callable, run: Callable, name: str, code: str) -> None:
    """The check knows a name that is near to another; a name near to none may be a function of the session, and Spark decides."""
    Path("code.py").write_text(CODE)
    with pytest.raises(MillstreamError) as failed:
        run(pipeline(TEXT.replace("FUNCTION", "raises").replace("SELECT f(", f"SELECT {name}(")))
    assert (failed.value.diagnostics[0].code, failed.value.diagnostics[0].span.line) == (code, 8)
