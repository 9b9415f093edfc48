"""Event times: read from numbers and texts; those that would ruin the clock are bad rows, and do not move the watermark."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from millstream import committed_files
from millstream.errors import RunError, SpecError

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  clicks:
    type: memory
    rows: ROWS
    schema: {at: TYPE}
    rows_per_epoch: 1
    on_error: POLICY
    event_time: {column: at, OPTIONS}
transforms:
  counted: {type: window, from: clicks, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}, late: drop}
sinks:
  out: {type: memory, from: counted}
  bad: {type: file, path: bad, format: json}
"""
GOOD = "2024-01-01T00:00:30Z"


def run_with(
    pipeline: Any, run: Any, values: list[Any], kind: str = "timestamp", options: str = "watermark: 0s", policy: str = "fail"
) -> Any:
    rows = json.dumps([{"at": value} for value in values])
    text = PIPELINE.replace("ROWS", rows).replace("TYPE", kind).replace("OPTIONS", options).replace("POLICY", policy)
    if policy != "{dead_letter: bad}":
        text = text.replace("  bad: {type: file, path: bad, format: json}\n", "")
    topology = pipeline(text)
    report = run(topology)
    table = topology.node("out").component.table()
    return report, {row["window_start"]: row["n"] for row in table.to_pylist()}


@pytest.mark.parametrize(
    ("value", "kind", "options"),
    [
        (1704067230, "int64", "unit: s"),
        (1704067230000, "int64", "unit: ms"),
        (1704067230000000, "int64", "unit: us"),
        (1704067230.5, "float64", "unit: s"),
        ("2024-01-01T00:00:30Z", "string", "watermark: 1s"),
        ("01.01.2024 00:00:30", "string", "format: dd.MM.yyyy HH:mm:ss"),
    ],
)
def test_times_are_read_from_numbers_and_texts(
    pipeline: Callable[..., Any], run: Callable[..., Any], value: Any, kind: str, options: str
) -> None:
    _, found = run_with(pipeline, run, [value], kind, options)
    assert found == {datetime(2024, 1, 1, tzinfo=UTC): 1}


AHEAD = (datetime.now(UTC) + timedelta(days=400)).strftime("%Y-%m-%dT00:00:00Z")
BAD = [
    (None, "timestamp", "is null"),
    ("1969-12-31T23:59:59Z", "timestamp", "is before 1970"),
    (AHEAD, "timestamp", "is more than 1d ahead of the clock"),
    ("99999-01-01", "string", "is more than 1d ahead of the clock: 9999"),
    ("soon", "string", "cannot be read: soon"),
]


@pytest.mark.parametrize(("value", "kind", "reason"), BAD)
def test_a_bad_time_stops_the_pipeline_with_its_place(
    pipeline: Callable[..., Any], run: Callable[..., Any], value: Any, kind: str, reason: str
) -> None:
    with pytest.raises(RunError, match=f"MS072.*`clicks`: the event time `at` {reason}") as caught:
        run_with(pipeline, run, [value], kind)
    span = caught.value.diagnostics[0].span
    assert span is not None and span.line == 9


def test_bad_times_become_dead_letters_and_do_not_move_the_watermark(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    values = [GOOD, AHEAD, GOOD, None, GOOD]
    report, found = run_with(pipeline, run, values, policy="{dead_letter: bad}")
    letters = [json.loads(line) for file in committed_files("bad") for line in Path(file).read_text().splitlines()]
    assert found == {datetime(2024, 1, 1, tzinfo=UTC): 3}, "no row is late after the one from far ahead"
    assert report.nodes["counted"].late == 0 and report.nodes["clicks"].rejected == 2 and len(letters) == 2


def test_a_time_within_max_ahead_is_fine(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    _, found = run_with(pipeline, run, [AHEAD], options="max_ahead: 500d")
    assert sum(found.values()) == 1


def test_a_number_needs_a_unit_and_a_missing_column_gets_the_nearest_name(pipeline: Callable[..., Any]) -> None:
    with pytest.raises(SpecError, match=r"MS008.*`at` of `clicks` is a number: say what it counts"):
        pipeline(PIPELINE.replace("ROWS", "[]").replace("TYPE", "int64").replace("OPTIONS", "watermark: 1s").replace("POLICY", "fail"))
    text = PIPELINE.replace("column: at", "column: att").replace("ROWS", "[]").replace("TYPE", "timestamp")
    with pytest.raises(SpecError, match=r"MS024.*`att` is not a column"):
        pipeline(text.replace("OPTIONS", "watermark: 1s").replace("POLICY", "fail"))
