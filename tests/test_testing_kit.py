"""The test kit runs the real plan with the ends replaced by memory."""

from collections.abc import Callable

import pytest

from millstream.errors import SpecError
from millstream.testing import run as run_pipeline

TEXT = """
sources:
  orders: {type: file, path: nowhere, format: json, schema: {id: int64, amount: "decimal(18,2)", at: timestamp}}
transforms:
  large: {type: filter, from: orders, where: amount > 1000}
sinks:
  out: {type: file, from: large, path: out, format: parquet}
"""


@pytest.mark.spark
def test_rows_go_in_and_come_out(pipeline: Callable) -> None:
    rows = [{"id": 1, "amount": 2000, "at": "2026-01-01T00:00:00Z"}, {"id": 2, "amount": 5, "at": None}]
    came = run_pipeline(pipeline(TEXT), inputs={"orders": rows}, observe=["orders"])
    assert [row["id"] for row in came["out"]] == [1]
    assert len(came["orders"]) == 2
    assert str(came["out"][0]["amount"]) == "2000.00"


@pytest.mark.spark
def test_a_source_without_rows_is_empty(pipeline: Callable) -> None:
    assert run_pipeline(pipeline(TEXT), inputs={})["out"] == []


def test_a_misspelt_source_is_refused(pipeline: Callable) -> None:
    with pytest.raises(SpecError, match="did you mean `orders`"):
        run_pipeline(pipeline(TEXT), inputs={"order": []})
