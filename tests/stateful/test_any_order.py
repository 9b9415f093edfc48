"""Two million rows in ten files, jittered by a second, in order and shuffled: exact totals, every window."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.spark
ROWS, KEYS, FILES = 2_000_000, 50, 10
PIPELINE = """
sources:
  events:
    type: file
    path: in
    format: parquet
    schema: {key: int64, value: int64, at: timestamp}
    mode: {type: bounded}
    max_files_per_epoch: EACH
    event_time: {column: at, watermark: 1s}
transforms:
  summed: {type: window, from: events, key_by: [key], window: {type: tumbling, size: 10s}, aggregate: {total: sum(value), n: count(*)}}
sinks:
  out: {type: memory, from: summed}
"""


@pytest.fixture(scope="module")
def events() -> pa.Table:
    dice = np.random.default_rng(5)
    seconds = np.arange(ROWS) / 20_000 + dice.uniform(0, 1, ROWS)
    at = (1_704_067_200_000_000 + seconds * 1e6).astype("int64")
    columns = {
        "key": dice.integers(0, KEYS, ROWS),
        "value": dice.integers(-100, 100, ROWS),
        "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def expected(events: pa.Table) -> dict[tuple[int, int], tuple[int, int]]:
    window = (events["at"].cast(pa.int64()).to_numpy() // 10_000_000) * 10
    grouped = pa.table({"key": events["key"], "w": window, "value": events["value"]}).group_by(["key", "w"])
    rows = grouped.aggregate([("value", "sum"), ("value", "count")]).to_pylist()
    return {(row["key"], row["w"]): (row["value_sum"], row["value_count"]) for row in rows}


@pytest.mark.parametrize(("order", "each"), [("in order", 1), ("shuffled", 1), ("shuffled", 3)])
def test_totals_are_exact_whatever_the_order_of_the_files(
    events: pa.Table, pipeline: Callable[..., Any], run: Callable[..., Any], order: str, each: int
) -> None:
    topology = pipeline(PIPELINE.replace("EACH", str(each)))
    Path("in").mkdir()
    numbers = list(range(FILES))
    if order == "shuffled":
        random.Random(3).shuffle(numbers)
    for place, number in enumerate(numbers):
        pq.write_table(events.slice(number * ROWS // FILES, ROWS // FILES), f"in/{number}.parquet")
        os.utime(f"in/{number}.parquet", (1_700_000_000 + place, 1_700_000_000 + place))
    run(topology)
    found = {
        (r["key"], int(r["window_start"].timestamp())): (r["total"], r["n"]) for r in topology.node("out").component.table().to_pylist()
    }
    assert found == expected(events)
