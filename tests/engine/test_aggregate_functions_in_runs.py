"""Aggregate functions of the user's over streams: running totals and windows, on Spark's own state."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
CODE = """
import pyarrow.compute as pc
import millstream

@millstream.function(returns="float64", aggregate=True)
def middle(values):
    return pc.quantile(values, 0.5)[0]

@millstream.function(returns="int64", aggregate=True)
def weighted(values, weights):
    return pc.sum(pc.multiply(values, weights))
"""
TEXT = """
functions: {my_middle: aggregating:middle, weighted: aggregating:weighted}
sources:
  rows: {type: file, path: in, format: json, schema: {k: string, x: int64, w: int64}, max_files_per_epoch: 1, mode: {type: continuous}}
transforms:
  totals:
    type: aggregate
    from: rows
    key_by: k
    aggregate: {m: my_middle(x) FILTER (WHERE x < 100), s: "weighted(x, w) + 0", n: count(*)}
sinks:
  out: {type: memory, from: totals}
settings: {trigger: {type: available_now}}
"""


@pytest.fixture(autouse=True)
def code(tmp_path: Path) -> None:
    (tmp_path / "aggregating.py").write_text(CODE)


def write(name: str, *rows: str) -> None:
    Path("in").mkdir(exist_ok=True)
    Path(f"in/{name}.json").write_text("\n".join(rows))


def totals(topology: Any) -> list[tuple[Any, ...]]:
    return [(row["k"], row["m"], row["s"], row["n"]) for row in topology.node("out").component.rows()]


def test_running_totals_remember_the_values_of_earlier_epochs(pipeline: Callable, run: Callable) -> None:
    write("1", '{"k": "a", "x": 1, "w": 1}', '{"k": "a", "x": 3, "w": null}', '{"k": "b", "x": 500, "w": 2}')
    topology = pipeline(TEXT)
    run(topology)
    assert sorted(totals(topology)) == [("a", 2.0, 1, 2), ("b", None, 1000, 1)]
    write("2", '{"k": "a", "x": 8, "w": 10}')
    again = pipeline(TEXT)
    run(again)
    assert totals(again) == [("a", 3.0, 81, 3)]


def test_the_state_survives_another_function_of_the_same_name(pipeline: Callable, run: Callable) -> None:
    write("1", '{"k": "a", "x": 1, "w": 1}')
    run(pipeline(TEXT))
    write("2", '{"k": "a", "x": 4, "w": 1}')
    Path("aggregating.py").write_text(
        CODE + "\n@millstream.function(returns='float64', aggregate=True)\ndef top(v):\n    return pc.max(v)\n"
    )
    changed = pipeline(TEXT.replace("my_middle: aggregating:middle", "my_middle: aggregating.py:top"))
    run(changed)
    assert totals(changed) == [("a", 4.0, 5, 2)]


def test_windows_take_them_too(pipeline: Callable, run: Callable) -> None:
    topology = pipeline("""
        functions: {my_middle: aggregating:middle}
        sources:
          rows:
            type: memory
            schema: {at: timestamp, x: int64}
            rows: [{at: "2026-01-01T00:00:10Z", x: 1}, {at: "2026-01-01T00:00:20Z", x: 4}, {at: "2026-01-01T00:07:00Z", x: 9}]
            event_time: {column: at}
        transforms:
          five: {type: window, from: rows, window: {type: tumbling, size: 5m}, aggregate: {m: my_middle(x)}}
        sinks:
          out: {type: memory, from: five}
        """)
    run(topology)
    assert sorted(row["m"] for row in topology.node("out").component.rows()) == [2.5, 9.0]


def test_windows_in_sql_take_them_too(pipeline: Callable, run: Callable) -> None:
    rows = [{"k": "a", "x": x, "at": f"2024-01-01T00:00:{x:02}Z"} for x in (5, 1, 3, 50, 40)]
    query = "SELECT k, window(at, '30 seconds') w, my_middle(x) AS m FROM rows GROUP BY 1, 2"
    topology = pipeline(f"""
        functions: {{my_middle: aggregating:middle}}
        sources:
          rows:
            type: memory
            rows: {rows}
            schema: {{k: string, x: int64, at: timestamp}}
            rows_per_epoch: 2
            event_time: {{column: at}}
        transforms: {{middles: {{type: sql, sql: "{query}"}}}}
        sinks: {{out: {{type: memory, from: middles}}}}
    """)
    run(topology)
    assert sorted(topology.node("out").component.table()["m"].to_pylist()) == [3.0, 45.0]
