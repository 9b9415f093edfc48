"""What happens in a worker, without Spark: results are fitted, failures carry notes, bad rows are found by halving."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.worker.batches import BatchRunner, WrongResultError

SCHEMA = pa.schema([("n", pa.int32()), ("s", pa.string())])


def run(function: Callable[..., Any], rows: int = 8, *, isolate: bool = False, size: int | None = None) -> list[dict[str, Any]]:
    batch = pa.RecordBatch.from_pydict({"x": list(range(rows))})
    runner = BatchRunner(function, "step", SCHEMA, size, isolate, str(Path.cwd()))
    return [row for result in runner.run([batch]) for row in result.to_pylist()]


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"s": [f"v{x}" for x in batch["x"].to_pylist()], "n": batch["x"]})


def test_columns_are_put_in_order_and_cast_where_nothing_is_lost() -> None:
    assert run(plain, 2) == [{"n": 0, "s": "v0"}, {"n": 1, "s": "v1"}]


def test_large_texts_are_texts() -> None:
    def large(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([batch["x"], pa.array(["a"] * batch.num_rows, pa.large_string())], ["n", "s"])

    assert run(large, 1) == [{"n": 0, "s": "a"}]


@pytest.mark.parametrize(
    "function",
    [
        lambda batch: [plain(batch), plain(batch)],
        lambda batch: pa.concat_tables([pa.Table.from_batches([plain(batch)])] * 2),
        lambda batch: (part for part in (plain(batch), plain(batch))),
    ],
    ids=["list", "table", "generator"],
)
def test_a_function_may_return_several_batches(function: Callable) -> None:
    assert len(run(function, 3)) == 6


def test_a_function_may_return_nothing() -> None:
    assert run(lambda batch: []) == []
    assert run(lambda batch: plain(batch).slice(0, 0)) == []


def test_batches_are_no_larger_than_asked_for() -> None:
    sizes: list[int] = []
    run(lambda batch: (sizes.append(batch.num_rows), plain(batch))[1], 10, size=4)
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda batch: 42, "expected a RecordBatch, got int"),
        (lambda batch: None, "expected a RecordBatch, got NoneType"),
        (lambda batch: "batch", "expected a RecordBatch, got str"),
        (lambda batch: [1], "expected a RecordBatch, got int"),
        (lambda batch: batch, "expected the columns `n`, `s`, got `x`"),
        (lambda batch: pa.RecordBatch.from_pydict({"n": ["x"], "s": ["y"]}), "expected `n` as int32, got string"),
        (lambda batch: pa.RecordBatch.from_pydict({"n": [2**40], "s": ["y"]}), "expected `n` as int32, got int64"),
    ],
    ids=["number", "nothing", "text", "list of numbers", "other columns", "other type", "too large"],
)
def test_a_wrong_result_says_what_was_expected(function: Callable, sentence: str) -> None:
    with pytest.raises(WrongResultError, match=sentence) as failed:
        run(function)
    assert failed.value.__notes__[0] == "millstream-node: step"
    assert failed.value.__notes__[1].startswith(f"millstream-schema: {sentence}")


def picky(batch: pa.RecordBatch) -> pa.RecordBatch:
    for value in batch["x"].to_pylist():
        if value in {3, 6}:
            raise ValueError(f"no {value}")
    return plain(batch)


def test_a_failure_keeps_its_type_and_says_whose_it_is() -> None:
    with pytest.raises(ValueError, match="no 3") as failed:
        run(picky)
    assert failed.value.__notes__ == ["millstream-node: step"]


def test_bad_rows_are_isolated_and_the_others_pass() -> None:
    rows = run(picky, isolate=True)
    assert [row["n"] for row in rows if row["_reject"] is None] == [0, 1, 2, 4, 5, 7]
    bad = [row for row in rows if row["_reject"]]
    assert [(json.loads(row["_reject"]["raw"]), row["_reject"]["error"]) for row in bad] == [
        ({"x": 3}, "ValueError: no 3"),
        ({"x": 6}, "ValueError: no 6"),
    ]
    assert all(row["n"] is None for row in bad)


def test_good_batches_are_called_once() -> None:
    calls: list[int] = []
    run(lambda batch: (calls.append(batch.num_rows), plain(batch))[1], 1000, isolate=True)
    assert calls == [1000]


def test_one_bad_row_costs_a_handful_of_calls() -> None:
    calls: list[int] = []

    def counted(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        return picky(batch) if batch.num_rows > 4 or 3 in batch["x"].to_pylist() else plain(batch)

    run(counted, 1024, isolate=True)
    assert len(calls) < 40


def test_half_a_generator_is_not_half_a_result() -> None:
    def halfway(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield plain(batch)
        picky(batch)

    rows = run(halfway, 5, isolate=True)
    assert [row["n"] for row in rows if row["_reject"] is None] == [0, 1, 2, 4]


def test_a_value_that_does_not_fit_is_a_bad_row_but_a_wrong_result_is_not() -> None:
    def large(batch: pa.RecordBatch) -> pa.RecordBatch:
        numbers = [2**40 if x == 3 else x for x in batch["x"].to_pylist()]
        return pa.RecordBatch.from_pydict({"n": numbers, "s": ["a"] * batch.num_rows})

    assert [row["n"] for row in run(large, 5, isolate=True) if row["_reject"] is None] == [0, 1, 2, 4]
    with pytest.raises(WrongResultError):
        run(lambda batch: batch, isolate=True)
