"""Batches are scored as the runtime scores them one by one, and each row that cannot be scored is a reject of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnxruntime
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto
from tests.models import making

from millstream.transforms.onnx import Onnx
from millstream.worker.models import ModelError, kept_model
from millstream.worker.scoring import ModelRunner


class Sent:
    """What Spark sends; it notes each time that it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @property
    def value(self) -> bytes:
        with self.file.with_suffix(".read").open("a") as notes:
            notes.write("read\n")
        return self.file.read_bytes()


def runner_of(batch: pa.RecordBatch, directory: Path, *, isolate: bool = True, op: str = "", **options: Any) -> ModelRunner:
    onnx = Onnx(**options)
    model, scores = onnx.load(onnx.read(directory)), tuple(onnx.scores())
    assert not list(onnx.mismatches(model, batch.schema))
    kinds = [model.outputs[score.output].type if score.place is not None else model.outputs[score.output].column_type for score in scores]
    schema = pa.schema([pa.field(score.column, kind) for score, kind in zip(scores, kinds, strict=True)])
    file = directory / onnx.model
    inputs = tuple((tensor.name, onnx.columns_of(tensor)) for tensor in model.inputs.values())
    return ModelRunner("scored", str(file), Sent(file), inputs, scores, schema, onnx.batch_size, 1, isolate, op, ("s3cret",))


def scored(batch: pa.RecordBatch, directory: Path, **options: Any) -> list[dict[str, Any]]:
    """What a worker makes of a batch."""
    return [row for result in runner_of(batch, directory, **options).run([batch]) for row in result.to_pylist()]


def errors(rows: list[dict[str, Any]]) -> list[str | None]:
    return [row["_reject"] and row["_reject"]["error"] for row in rows]


def test_columns_stand_side_by_side(tmp_path: Path) -> None:
    making.linear(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "x": [1, 2], "y": [0.5, 0.25]})
    rows = scored(batch, tmp_path, model="m.onnx", inputs={"features": ["x", "y"]}, outputs=["score"])
    assert [(row["id"], row["score"]) for row in rows] == [("a", 6.0), ("b", 4.5)]


def test_values_of_a_vector_have_columns_of_their_own(tmp_path: Path) -> None:
    making.shares(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"x": [[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]]})
    rows = scored(batch, tmp_path, model="m.onnx", outputs={"best": "label", "all": "p", "last": "p[2]"})
    assert [row["best"] for row in rows] == [2, 0]
    assert [row["last"] for row in rows] == [row["all"][2] for row in rows]
    assert sum(rows[0]["all"]) == pytest.approx(1, abs=1e-6)


def test_each_unusable_row_says_why_and_the_others_are_scored(tmp_path: Path) -> None:
    making.shares(tmp_path / "m.onnx")
    x = pa.array([[1.0, 2.0, 3.0], None, [1.0, 2.0], [1.0, None, 3.0], [3.0, 2.0, 1.0]], pa.list_(pa.float64()))
    rows = scored(pa.RecordBatch.from_pydict({"id": ["s3cret", "b", "c", "d", "e"], "x": x}), tmp_path, model="m.onnx", outputs=["label"])
    assert [row["label"] for row in rows] == [2, None, None, None, 0]
    assert errors(rows) == [
        None,
        "`x` is null, and the model needs a value",
        "`x` has 2 values, and the model takes 3",
        "`x` contains a null, and the model needs a value",
        None,
    ]
    assert json.loads(rows[2]["_reject"]["raw"]) == {"id": "c", "x": [1.0, 2.0]}


def test_what_is_not_a_number_is_a_reject(tmp_path: Path) -> None:
    making.logarithm(tmp_path / "m.onnx")
    rows = scored(pa.RecordBatch.from_pydict({"x": [1.0, -1.0, 0.0]}), tmp_path, model="m.onnx", outputs=["y"])
    assert [row["y"] for row in rows] == [0.0, None, float("-inf")]
    assert errors(rows) == [None, "`y` is not a number", None]


def test_without_on_error_the_first_such_row_ends_the_run_and_secrets_are_hidden(tmp_path: Path) -> None:
    making.logarithm(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"x": [1.0, -1.0], "token": ["s3cret", "s3cret"]})
    with pytest.raises(ModelError, match=r"MS212 scored inputs: `y` is not a number, in the row .*-1\.0") as caught:
        scored(batch, tmp_path, isolate=False, model="m.onnx", outputs=["y"])
    assert "s3cret" not in str(caught.value)


def test_a_number_that_the_model_cannot_hold_is_a_reject(tmp_path: Path) -> None:
    making.same(tmp_path / "m.onnx", TensorProto.INT32)
    rows = scored(pa.RecordBatch.from_pydict({"x": [1, 2**31, -5]}), tmp_path, model="m.onnx", outputs=["y"])
    assert [row["y"] for row in rows] == [1, None, -5]
    assert errors(rows)[1] == "`x` is 2147483648, and the model takes int32"


def test_a_vector_with_such_a_number_is_a_reject(tmp_path: Path) -> None:
    making.same_vector(tmp_path / "m.onnx", TensorProto.INT32)
    x = pa.array([[1, 2], [3, 2**40 + 7], None, [5, 6]], pa.list_(pa.int64()))
    rows = scored(pa.RecordBatch.from_pydict({"x": x}), tmp_path, model="m.onnx", outputs=["y"])
    assert [row["y"] for row in rows] == [[1, 2], None, None, [5, 6]]
    assert errors(rows)[1] == "`x` is 1099511627783, and the model takes int32"


def test_one_column_is_a_vector_of_one(tmp_path: Path) -> None:
    making.total(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"a": [1.5, 2.5]})
    rows = scored(batch, tmp_path, model="m.onnx", inputs={"x": "a"}, outputs=["sum", "same"])
    assert [(row["sum"], row["same"]) for row in rows] == [(1.5, [1.5]), (2.5, [2.5])]


def test_a_row_on_which_the_model_fails_is_a_reject(tmp_path: Path) -> None:
    making.place(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"id": [0, 2, 99, 1, -50]})
    rows = scored(batch, tmp_path, model="m.onnx", outputs=["value"])
    assert [row["value"] for row in rows] == [10.0, 30.0, None, 20.0, None]
    assert [error is not None and error.startswith("the model failed: ") for error in errors(rows)] == [False, False, True, False, True]
    with pytest.raises(ModelError, match="MS210 scored model: the model failed"):
        scored(batch, tmp_path, isolate=False, model="m.onnx", outputs=["value"])


def test_few_models_are_kept(tmp_path: Path) -> None:
    read: list[str] = []
    making.linear(tmp_path / "m.onnx")

    def load(name: str) -> None:
        kept_model(name, 1, lambda: read.append(name) or (tmp_path / "m.onnx").read_bytes())  # type: ignore[func-returns-value]

    for name in ("a", "b", "a", "c", "d", "a", "e", "a", "b"):
        load(name)
    assert read == ["a", "b", "c", "d", "e", "b"], "the one that was used last stays"


def test_vectors_of_several_lengths_come_back_in_their_order(tmp_path: Path) -> None:
    making.total(tmp_path / "m.onnx")
    vectors = [[1.0], [1.0, 2.0], [], [5.0], [3.0, 4.0]]
    rows = scored(
        pa.RecordBatch.from_pydict({"x": pa.array(vectors, pa.list_(pa.float32()))}), tmp_path, model="m.onnx", outputs=["sum", "same"]
    )
    assert [row["sum"] for row in rows] == [1, 3, 0, 5, 7]
    assert [row["same"] for row in rows] == vectors


def test_a_delete_without_values_has_no_score(tmp_path: Path) -> None:
    making.logarithm(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"x": [1.0, None, None], "_op": ["i", "d", "u"]})
    rows = scored(batch, tmp_path, op="_op", model="m.onnx", outputs=["y"])
    assert [row["y"] for row in rows] == [0.0, None, None]
    assert [bool(error) for error in errors(rows)] == [False, False, True]


def test_texts_are_inputs_too(tmp_path: Path) -> None:
    making.same(tmp_path / "m.onnx", TensorProto.STRING)
    rows = scored(pa.RecordBatch.from_pydict({"x": ["ä", ""]}), tmp_path, model="m.onnx", outputs=["y"])
    assert [row["y"] for row in rows] == ["ä", ""]


def test_a_process_loads_a_model_once(tmp_path: Path) -> None:
    making.linear(tmp_path / "m.onnx")
    batch = pa.RecordBatch.from_pydict({"x": [[1.0, 2.0]]})
    runner = runner_of(batch, tmp_path, model="m.onnx", inputs={"features": "x"}, outputs=["score"])
    for _ in range(2):
        assert next(runner.run([batch]))["score"].to_pylist() == [21.0]
    assert (tmp_path / "m.read").read_text() == "read\n"


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(*[st.none() | st.floats(-1e6, 1e6, width=32) for _ in range(3)]), max_size=30),
    size=st.integers(1, 8),
    offset=st.integers(0, 3),
)
def test_a_row_has_the_score_that_it_has_alone(tmp_path_factory: Any, rows: list[Any], size: int, offset: int) -> None:
    """Whatever else is in its batch, and wherever a slice begins."""
    folder = tmp_path_factory.mktemp("model")
    making.shares(folder / "m.onnx")
    session = onnxruntime.InferenceSession((folder / "m.onnx").read_bytes())
    columns = {name: pa.array([row[place] for row in rows], pa.float32()) for place, name in enumerate("abc")}
    batch = pa.RecordBatch.from_pydict(columns).slice(min(offset, len(rows)))
    options = {"model": "m.onnx", "inputs": {"x": ["a", "b", "c"]}, "outputs": ["label"], "batch_size": size}
    found = scored(batch, folder, **options)
    assert len(found) == batch.num_rows
    for row in found:
        values = [row["a"], row["b"], row["c"]]
        alone = None if None in values else session.run(["label"], {"x": [values]})[0][0]
        assert row["label"] == alone
        assert (row["_reject"] is None) == (alone is not None)
