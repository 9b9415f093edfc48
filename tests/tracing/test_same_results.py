"""What is traced does not change what a pipeline computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    name: p
    sources:
      orders:
        type: generator
        rows: 40
        rows_per_epoch: 10
        fields: {{id: {{type: sequence}}, b: {{type: sequence}}}}
        {trace}
    transforms:
      step: {step}
    sinks:
      out: {{type: file, from: step, path: {out}, format: json}}
    settings: {{checkpoint: {checkpoint}{otlp}}}
"""
UNREACHABLE = ', telemetry: {otlp: {endpoint: "http://127.0.0.1:9"}}'
Results = Callable[..., list[object]]


@pytest.fixture
def results(pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> Results:
    """The rows of a pipeline, or what it says when it fails."""

    def go(step: str, trace: str, out: str, checkpoint: str = "") -> list[object]:
        traced, otlp = (f"telemetry: {{trace: {trace}}}", UNREACHABLE) if trace else ("", "")
        run(pipeline(TEXT.format(step=step, trace=traced, otlp=otlp, out=out, checkpoint=checkpoint or f"ck-{out}")))
        lines = [line for file in (tmp_path / out).glob("*.json") for line in file.read_text().splitlines()]
        return sorted((json.loads(line) for line in lines), key=str)

    return go


@pytest.mark.parametrize(
    "step",
    [
        "{type: sql, sql: 'SELECT to_json(struct(*)) AS j FROM orders'}",
        "{type: sql, sql: 'SELECT xxhash64(*) AS h FROM orders'}",
        "{type: sql, sql: 'SELECT x FROM orders AS t(x, y)'}",
        "{type: sql, sql: 'WITH c(x, y) AS (SELECT * FROM orders) SELECT * FROM c'}",
        "{type: sql, sql: 'SELECT array(t.*) AS a FROM orders t'}",
        "{type: sql, sql: 'SELECT * EXCEPT (b) FROM orders'}",
        "{type: sql, sql: 'SELECT id % 3 AS k, count(*) AS n FROM orders GROUP BY id % 3', emit: final}",
        "{type: sql, sql: 'SELECT DISTINCT * FROM orders', emit: final}",
        "{type: select, from: orders, columns: {j: to_json(struct(*))}}",
        "{type: with_columns, from: orders, columns: {j: to_json(struct(*))}}",
        "{type: filter, from: orders, where: \"to_json(struct(*)) NOT LIKE '%-01%'\"}",
        "{type: union, from: [orders, orders]}",
        "{type: drop, from: orders, columns: [b]}",
    ],
)
def test_rows_are_equal_with_and_without_traces(results: Results, step: str) -> None:
    plain = results(step, "", "plain")
    assert plain
    assert results(step, "always", "traced") == plain


def test_a_condition_that_fails_traces_nothing_and_fails_nothing(results: Results) -> None:
    step = "{type: filter, from: orders, where: id >= 0}"
    assert len(results(step, "{where: \"cast(concat('x', b) AS int) > 3\"}", "out")) == 40


WINDOWS = """
    name: p
    sources:
      orders:
        type: file
        path: in
        format: json
        schema: {{id: int64, at: timestamp}}
        event_time: {{column: at, watermark: 0s}}
        {trace}
    transforms:
      minutes: {{type: window, from: orders, window: {{type: tumbling, size: 1m}}, aggregate: {{n: count(*), s: sum(id)}}}}
    sinks:
      out: {{type: file, from: minutes, path: out, format: json}}
    settings: {{trigger: {{type: available_now}}{otlp}}}
"""


def test_traces_are_turned_on_and_off_on_a_checkpoint_with_state(
    pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number, traced in enumerate([False, True, False, True]):
        rows = [{"id": id_, "at": f"2026-01-01T00:0{number + half}:30Z"} for id_ in range(10) for half in (0, 1)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
        trace, otlp = ("telemetry: {trace: always}", UNREACHABLE) if traced else ("", "")
        run(pipeline(WINDOWS.format(trace=trace, otlp=otlp)))
    found = [json.loads(line) for file in (tmp_path / "out").glob("*.json") for line in file.read_text().splitlines()]
    assert sorted(row["n"] for row in found) == [10, 20, 20, 20]
    assert {row["s"] for row in found if row["n"] == 20} == {90}
