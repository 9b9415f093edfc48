"""Blame goes to the node that gave Spark the statement which failed: not to another one whose text looks alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.errors import MillstreamError
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
PIPELINE = """
sources: {{rows: {{type: memory, rows: [{{id: 1, qty: 0, total: 10}}]}}}}
transforms:
  safe: {{type: sql, sql: "SELECT id, total / qty AS price FROM rows WHERE qty > 0"}}
  {broken}
sinks:
  a: {{type: memory, from: safe}}
  b: {{type: memory, from: broken}}
settings: {{checkpoint: ck}}
"""
SQL = """broken:
    type: sql
    sql: |
      SELECT id,
             total / qty AS price
      FROM rows"""


def failure(run: Callable[..., object], topology: Topology) -> MillstreamError:
    with pytest.raises(MillstreamError) as caught:
        run(topology)
    return caught.value


def test_the_query_that_failed_is_blamed_with_its_line(pipeline: Callable[..., Topology], run: Callable[..., object]) -> None:
    (found,) = failure(run, pipeline(PIPELINE.format(broken=SQL))).diagnostics
    assert (found.code, found.node, found.cause) == ("MS067", "broken", "DIVIDE_BY_ZERO")
    assert found.span is not None and found.span.text.strip() == "total / qty AS price"
    assert found.span.text[found.span.column - 1 : found.span.end - 1] == "total / qty"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("{type: filter, from: rows, where: total / qty > 1}", "total / qty"),
        ("{type: with_columns, from: rows, columns: {price: total / qty}}", "total / qty"),
        ("{type: select, from: rows, columns: {price: total / qty}}", "total / qty"),
        ("{type: select, from: rows, columns: {id: id, price: total / qty}}", "total / qty"),
    ],
    ids=["filter", "with_columns", "select", "the second column"],
)
def test_so_is_an_expression(pipeline: Callable[..., Topology], run: Callable[..., object], step: str, text: str) -> None:
    (found,) = failure(run, pipeline(PIPELINE.format(broken=f"broken: {step}"))).diagnostics
    assert (found.code, found.node) == ("MS067", "broken")
    assert found.span is not None and "broken" in found.span.text
    assert found.span.text[found.span.column - 1 : found.span.end - 1] == text


def test_a_route_is_blamed_at_the_condition_that_failed(pipeline: Callable[..., Topology], run: Callable[..., object]) -> None:
    route = "by: {type: route, from: rows, routes: {few: id > 5, dear: total / qty > 1}}\n  broken: {type: branch, from: by, branch: dear}"
    (found,) = failure(run, pipeline(PIPELINE.format(broken=route))).diagnostics
    assert (found.code, found.node) == ("MS067", "by")
    assert found.span is not None and found.span.text[found.span.column - 1 : found.span.end - 1] == "total / qty"
