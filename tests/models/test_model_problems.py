"""A check compares a model with the rows, without Spark, and names each mistake at its option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.models import making

from millstream.plan.components import Problem
from millstream.transforms import onnx as transform
from millstream.transforms.onnx import Onnx

ROWS = pa.schema([("id", pa.string()), ("amount", pa.float64()), ("hour", pa.int32()), ("xs", pa.list_(pa.float32()))])


def found(directory: Path, rows: pa.Schema | None = ROWS, **options: Any) -> list[tuple[str, str, str, str]]:
    problems: list[Problem] = Onnx(**{"model": "m.onnx", "outputs": ["score"]} | options).problems({"orders": rows}, directory)
    return [(each.code, each.field, each.message, each.help) for each in problems]


def test_a_model_that_fits(tmp_path: Path) -> None:
    making.linear(tmp_path / "m.onnx")
    assert found(tmp_path, inputs={"features": ["amount", "hour"]}) == []
    assert found(tmp_path, inputs={"features": "xs"}) == []
    assert found(tmp_path, None, inputs={"features": "anything"}) == []


@pytest.mark.parametrize(
    ("options", "code", "field", "said"),
    [
        ({}, "MS211", "model", "no column for the model's input `features` (float[rows, 2])"),
        ({"inputs": {"features": ["amount", "huor"]}}, "MS024", "inputs.features.huor", "unknown column `huor`"),
        ({"inputs": {"features": ["amount", "id"]}}, "MS211", "inputs.features", "`id` is string, and the model takes float"),
        ({"inputs": {"features": "amount"}}, "MS211", "inputs.features", "1 column for an input with 2 values per row"),
        ({"inputs": {"features": ["xs", "amount"]}}, "MS211", "inputs.features", "`xs` is a list: it is an input by itself"),
        ({"inputs": {"features": "xs", "feature": "xs"}}, "MS211", "inputs.feature", "the model has no input `feature`"),
        ({"inputs": {"features": "xs"}, "outputs": ["scor"]}, "MS211", "outputs.scor", "the model has no output `scor`"),
        (
            {"inputs": {"features": "xs"}, "outputs": {"a": "score[1]"}},
            "MS211",
            "outputs.a",
            "the output `score` (float[rows, 1]) has one value per row, counted from 0",
        ),
        ({"inputs": {"features": "xs"}, "outputs": {"Amount": "score"}}, "MS211", "outputs", "the rows already have a column `Amount`"),
    ],
)
def test_mistakes(tmp_path: Path, options: dict[str, Any], code: str, field: str, said: str) -> None:
    making.linear(tmp_path / "m.onnx")
    assert [each[:3] for each in found(tmp_path, **options)] == [(code, field, said)]


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    making.linear(tmp_path / "fraud.onnx")
    assert found(tmp_path, model="farud.onnx") == [
        ("MS210", "model", "`farud.onnx` cannot be read: No such file or directory", "did you mean `fraud.onnx`?")
    ]


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("not a model")
    ((code, field, said, _),) = found(tmp_path)
    assert (code, field) == ("MS210", "model")
    assert said.startswith("`m.onnx` cannot be loaded: ")
    assert "onnxruntime/" not in said


def test_a_fixed_number_of_rows_is_refused(tmp_path: Path) -> None:
    making.linear(tmp_path / "m.onnx", rows=1)
    said = found(tmp_path, inputs={"features": "xs"})
    assert (
        "MS210",
        "model",
        "the model takes 1 rows at a time: `features` (float[rows, 2])",
        "export it with a dynamic first axis",
    ) in said


def test_without_the_package_the_check_says_that_it_did_not_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    making.linear(tmp_path / "m.onnx")
    monkeypatch.setattr(transform, "find_spec", lambda name: None)
    ((code, _, _, help_),) = found(tmp_path)
    assert code == "MS045"
    assert "millstream[onnx]" in help_
