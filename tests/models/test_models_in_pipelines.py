"""A model in a pipeline: scores reach the sinks, rows that it cannot score go where `on_error` says, and a run says what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.models import making

from millstream import StreamEnvironment
from millstream.errors import MillstreamError

pytestmark = pytest.mark.spark
PIPELINE = """
    sources:
      orders: {type: file, path: in, format: json, mode: {type: bounded}, schema: {id: int64, a: float64, b: float32}}
    transforms:
      scored: {type: onnx, from: orders, model: m.onnx, inputs: {features: [a, b]}, outputs: [score], on_error: {dead_letter: bad}}
      large: {type: sql, sql: "SELECT id, score FROM scored WHERE score > 5"}
    sinks:
      out: {type: file, from: large, path: out, format: json}
      bad: {type: file, path: bad, format: json}
"""


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.json")) for line in path.read_text().splitlines()]


def test_scores_and_dead_letters(pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path) -> None:
    making.linear(tmp_path / "m.onnx")
    write(tmp_path, "1.json", [{"id": 1, "a": 1, "b": 2}, {"id": 2, "a": None, "b": 2}, {"id": 3, "a": 0, "b": 0.5}])
    report = run(pipeline(PIPELINE))
    assert read(tmp_path / "out") == [{"id": 1, "score": 21.0}]
    assert [(row["node"], json.loads(row["raw"])["id"]) for row in read(tmp_path / "bad")] == [("scored", 2)]
    assert report.rows_written == 2


def test_vectors_from_python(tmp_path: Path, spark: Any) -> None:
    making.linear(tmp_path / "m.onnx", weights=(3.0, 4.0, 5.0))
    rows = StreamEnvironment("vectors", spark=spark).from_rows([{"x": [1.0, 2.0, 3.0]}, {"x": [0.0, 0.0, 1.0]}])
    found = rows.score(tmp_path / "m.onnx", inputs={"features": "x"}, outputs=["score"]).filter("score > 0").collect()
    assert sorted(found["score"].to_pylist()) == [5.0, 26.0]


def test_a_model_that_is_gone_at_the_start_is_named(pipeline: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(MillstreamError, match=r"MS210.*`m.onnx` cannot be read"):
        pipeline(PIPELINE)
