"""Transforms over a changelog: windows with early results, and `first` and `last`, which use event time everywhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.connectors.memory.sink import MemorySink
from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
ROWS = [
    ("1", "a", 5, 1, "u"),
    ("2", "a", 7, 2, "u"),
    ("3", "b", 9, 0, "u"),
    ("1", "a", 6, 3, "u"),
    ("2", "a", 7, 2, "d"),
    ("4", "a", 1, 1, "i"),
]
"""Id, key, value, minute, change."""


@pytest.mark.parametrize(
    ("node", "table"),
    [
        ("type: window, window: {type: tumbling, size: 2m}, emit: updates", {("a", "00:00", 1), ("a", "00:02", 6), ("b", "00:00", 9)}),
        ("type: aggregate", {("a", 6), ("b", 9)}),
    ],
)
def test_the_last_value_is_that_of_the_latest_row(
    node: str, table: set[tuple[object, ...]], pipeline: Callable[..., Topology], run: Callable[..., Report]
) -> None:
    rows = ", ".join(f"{{id: '{i}', k: {k}, v: {v}, at: '2024-01-01T00:0{minute}:00Z', _op: {op}}}" for i, k, v, minute, op in ROWS)
    topology = pipeline(f"""
        sources:
          t:
            type: memory
            rows: [{rows}]
            schema: {{id: string, k: string, v: int64, at: timestamp, _op: string}}
            rows_per_epoch: 1
            primary_key: id
            event_time: {{column: at, watermark: 0s}}
        transforms: {{q: {{{node}, from: t, key_by: [k], aggregate: {{latest: last(v)}}}}}}
        sinks: {{out: {{type: memory, from: q}}}}
    """)
    run(topology)
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    kept: dict[tuple[object, ...], tuple[object, ...]] = {}
    for row in sink.rows():
        key = (row["k"], row["window_start"].strftime("%H:%M")) if "window_start" in row else (row["k"],)
        kept.pop(key, None)
        kept |= {key: (*key, row["latest"])} if row["_op"] != "d" else {}
    assert set(kept.values()) == table
