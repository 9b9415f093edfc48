"""Rejects of files whose columns have types that Spark cannot hash are isolated as others are, whichever columns are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  r: {type: file, path: in, format: json, schema: {id: int64, m: "map<string, int64>"}, mode: {type: bounded}, on_error: {dead_letter: bad}}
transforms:
  ids: {type: select, from: r, columns: [id]}
sinks:
  out: {type: file, from: r, path: out, format: json}
  ids_only: {type: file, from: ids, path: ids, format: json}
  bad: {type: file, path: bad, format: json}
"""


def rows(folder: Path) -> list[Any]:
    return [json.loads(line) for path in sorted(folder.glob("*.json")) for line in path.read_text().splitlines()]


def test_a_map_that_does_not_fit_is_a_reject(pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.json").write_text('{"id": 1, "m": {"a": 2}}\n{"id": 2, "m": {"a": "no number"}}\n')
    run(pipeline(PIPELINE))
    assert rows(tmp_path / "out") == [{"id": 1, "m": {"a": 2}}]
    assert rows(tmp_path / "ids") == [{"id": 1}], "the column that does not fit is parsed also where it is not read"
    assert [json.loads(row["raw"])["id"] for row in rows(tmp_path / "bad")] == [2]
