"""A growing input that is read now and then: windows stay open from run to run, and the summary says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream import committed_files

pytestmark = pytest.mark.spark
PIPELINE = """
name: p
settings: {trigger: {type: available_now}}
sources:
  clicks:
    type: file
    path: in
    format: json
    schema: {at: timestamp}
    event_time: {column: at, watermark: 0s}
transforms:
  counted: {type: window, from: clicks, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}
sinks:
  out: {type: file, from: counted, path: out, format: json}
"""


def counts() -> list[int]:
    return [json.loads(line)["n"] for file in committed_files("out") for line in Path(file).read_text().splitlines()]


def test_windows_stay_open_between_runs(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    Path("in").mkdir()
    Path("in/1.json").write_text('{"at": "2024-01-01T00:00:10Z"}\n')
    report = run(pipeline(PIPELINE))
    assert counts() == [] and any("stay open until the next run" in note for note in report.notes)
    Path("in/2.json").write_text('{"at": "2024-01-01T00:00:20Z"}\n{"at": "2024-01-01T00:01:00Z"}\n')
    run(pipeline(PIPELINE))
    assert counts() == [2], "the first minute has both rows; the second is open"
