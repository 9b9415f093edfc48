"""A function that raises, returns something else, or kills its worker: the node, the line, the user's own frame."""

from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import committed_files, read_committed
from millstream.errors import Diagnostic, MillstreamError

pytestmark = pytest.mark.spark
TEXT = """
sources:
  rows: {type: memory, rows: [{id: 1}, {id: 2}, {id: 3}]}
transforms:
  step:
    type: python
    from: rows
    function: code.py:FUNCTION
    schema: {id: int64}
sinks:
  out: {type: file, from: step, path: out, format: parquet}
"""
CODE = """
import os
import pyarrow as pa

def raises(batch):
    for value in batch["id"].to_pylist():
        if value == 2:
            raise ValueError("two is too much")
    return batch

def wrong_columns(batch):
    return pa.RecordBatch.from_pydict({"other": ["x"] * batch.num_rows})

def wrong_type(batch):
    return pa.RecordBatch.from_pydict({"id": ["x"] * batch.num_rows})

def not_a_batch(batch):
    return 42

def dies(batch):
    if batch.num_rows:
        os._exit(9)
    return batch
"""


def failure(pipeline: Callable, run: Callable, function: str) -> Diagnostic:
    Path("code.py").write_text(CODE)
    topology = pipeline(TEXT.replace("FUNCTION", function))
    with pytest.raises(MillstreamError) as failed:
        run(topology)
    assert committed_files("out") == []
    return failed.value.diagnostics[0]


def test_one_that_raises_is_shown_with_its_own_line(pipeline: Callable, run: Callable) -> None:
    error = failure(pipeline, run, "raises")
    assert (error.code, error.span.line) == ("MS063", 8)
    assert "`step`" in error.message
    assert "ValueError: two is too much" in error.message
    assert "code.py:8 in raises" in error.detail


@pytest.mark.parametrize(("function", "of_a_row"), [("wrong_columns", False), ("wrong_type", True), ("not_a_batch", False)])
def test_one_that_returns_something_else(pipeline: Callable, run: Callable, function: str, of_a_row: bool) -> None:
    error = failure(pipeline, run, function)
    assert error.code == "MS064"
    assert "`step`" in error.message
    assert f"`code.py:{function}`" in error.help
    assert ("on_error" in error.help) == of_a_row


def test_one_that_kills_its_worker(pipeline: Callable, run: Callable) -> None:
    error = failure(pipeline, run, "dies")
    assert (error.code, error.span.line) == ("MS065", 8)


def test_the_session_still_works_afterwards(pipeline: Callable, run: Callable) -> None:
    Path("fine.py").write_text("def same(batch):\n    return batch\n")
    topology = pipeline(TEXT.replace("code.py:FUNCTION", "fine.py:same"))
    run(topology)
    assert sorted(read_committed("out")["id"].to_pylist()) == [1, 2, 3]


def test_a_function_that_is_not_there_is_found_by_check(pipeline: Callable) -> None:
    Path("code.py").write_text(CODE)
    with pytest.raises(MillstreamError, match="MS016"):
        pipeline(TEXT.replace("FUNCTION", "raise_"))
