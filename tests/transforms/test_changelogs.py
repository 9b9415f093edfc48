"""A changelog through every kind of step: `_op` and `_seq` stay, and conditions take old rows back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark

ROWS = """[
    {id: 1, v: 5, OP: i, _seq: 1}, {id: 1, v: 50, OP: u, _seq: 2}, {id: 2, v: 60, OP: i, _seq: 3},
    {id: 2, v: 6, OP: u, _seq: 4}, {id: 1, v: 50, OP: d, _seq: 5}, {id: 3, v: 7, OP: i, _seq: 6}]"""
PASSED = [(1, "u", 2), (2, "i", 3), (2, "d", 4), (1, "d", 5)]
FUNCTIONS = """
import pyarrow as pa
import pyarrow.compute as pc

def twice(batch):
    return pa.RecordBatch.from_pydict({"id": batch["id"], "v": pc.multiply(batch["v"], 2)})

def some(batch):
    return twice(batch.filter(pc.greater(batch["v"], 10)))
"""
TEXT = """
    sources:
      changes: {{type: memory, rows: {rows}}}
      plain: {{type: memory, rows: [{{id: 9, v: 99}}]}}
    transforms:
      step: {step}
    sinks: {{out: {{type: memory, from: step}}}}
"""


@pytest.fixture
def results(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> Callable[..., list[Any]]:
    def go(step: str, op: str = "_op") -> list[Any]:
        (tmp_path / "steps.py").write_text(FUNCTIONS)
        topology = pipeline(TEXT.format(rows=ROWS.replace("OP", op).replace("\n", ""), step=step))
        run(topology)
        rows = topology.by_name["out"].component.rows()
        return sorted(((row["id"], row[op], row["_seq"]) for row in rows), key=lambda row: (row[2] is None, row[2]))

    return go


@pytest.mark.parametrize(
    ("step", "op"),
    [
        ("{type: sql, sql: SELECT id FROM changes WHERE v > 10}", "_op"),
        ("{type: sql, sql: SELECT * FROM changes WHERE v > 10}", "_gs_op"),
        ("{type: filter, from: changes, where: v > 10}", "_op"),
        ("{type: filter, from: changes, where: v > 10, on_error: drop}", "_op"),
    ],
)
def test_a_condition_takes_old_rows_back(results: Callable[..., list[Any]], step: str, op: str) -> None:
    assert results(step, op) == PASSED


def test_a_condition_on_the_operation_is_left_alone(results: Callable[..., list[Any]]) -> None:
    assert results("{type: filter, from: changes, where: _op = 'u'}") == [(1, "u", 2), (2, "u", 4)]


@pytest.mark.parametrize("step", ["{type: select, from: changes, columns: [id]}", "{type: python, from: changes, function: 'steps:twice'}"])
def test_a_step_that_forgets_keeps(results: Callable[..., list[Any]], step: str) -> None:
    assert [op for _, op, _ in results(step)] == ["i", "u", "i", "u", "d", "i"]


@pytest.mark.parametrize(
    "step", ["{type: union, from: [changes, plain]}", "{type: sql, sql: SELECT * FROM changes UNION ALL SELECT * FROM plain}"]
)
def test_plain_rows_beside_a_changelog_are_inserts(results: Callable[..., list[Any]], step: str) -> None:
    assert results(step)[-1] == (9, "i", None)


def test_a_function_that_drops_rows_must_say_which(results: Callable[..., list[Any]]) -> None:
    with pytest.raises(MillstreamError, match="went in and 3 came out"):
        results("{type: python, from: changes, function: 'steps:some'}")
