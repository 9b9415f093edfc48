"""Dedup keeps what a plain program over the sorted rows would keep, however they arrive and wherever epochs are cut."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transforms.streams import Stream, flat

from millstream.errors import MillstreamError
from millstream.transforms.dedup import Dedup
from millstream.worker.buckets import from_bytes, to_bytes
from millstream.worker.deduplication import KEPT, Deduplication
from millstream.worker.output_batches import OutputShape
from millstream.worker.processing import Moment, as_micros
from millstream.worker.table_runner import TableRunner

T0 = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string()))])
WITHIN, DELAY = 10, 15
Row = dict[str, Any]
ROW = st.fixed_dictionaries({"user": st.sampled_from(["a", "b", "c"]), "n": st.integers(0, 3), "at": st.integers(20, 90)})

SHUFFLE = st.lists(st.integers(0, DELAY - 1), min_size=40, max_size=40)


def timed(row: Row) -> Row:
    return {**row, "at": T0 + timedelta(minutes=row["at"]), "tags": [str(row["n"])]}


def oracle(rows: list[Row]) -> list[Row]:
    kept: list[Row] = []
    last: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row["at"], row["n"])):
        if row["user"] not in last or row["at"] >= last[row["user"]] + WITHIN:
            last[row["user"]] = row["at"]
            kept.append(row)
    return kept


def cut(rows: list[Row], shuffle: list[int], sizes: list[int]) -> list[list[Row]]:
    """The rows in epochs, out of order by less than the delay."""
    mixed = [row for _, row in sorted(zip(shuffle, rows, strict=False), key=lambda pair: pair[1]["at"] + pair[0])]
    epochs, start = [], 0
    for size in sizes:
        epochs.append(mixed[start : start + size])
        start += size
    return [epoch for epoch in [*epochs, mixed[start:]] if epoch]


def comparable(rows: list[Row]) -> list[tuple[Any, ...]]:
    return sorted((row["user"], row["at"], row["n"]) for row in rows)


class Alone:
    """One bucket without Spark."""

    def __init__(self) -> None:
        function = Deduplication("at", ("n", "tags"), WITHIN * 60_000_000)
        self.runner = TableRunner(function, ("user",), SCHEMA, SCHEMA.append(pa.field(KEPT, pa.bool_())), OutputShape(SCHEMA, {}, True), ())
        self.blob: bytes | None = None

    def epoch(self, rows: list[Row], watermark: datetime) -> list[Row]:
        table = pa.Table.from_pylist([timed(row) for row in rows], SCHEMA) if rows else None
        visit = self.runner.visit(table, from_bytes(self.blob) if self.blob else None, Moment(as_micros(watermark), 0))
        self.blob = to_bytes(visit.state) if visit.state.num_rows else None
        return [row for batch in visit.batches for row in batch.to_pylist()]


@settings(deadline=None, max_examples=300)
@given(st.lists(ROW, max_size=40), SHUFFLE, st.lists(st.integers(1, 10), max_size=8))
def test_the_result_depends_on_the_rows_alone(rows: list[Row], shuffle: list[int], sizes: list[int]) -> None:
    bucket, out, latest = Alone(), [], 0
    for epoch in cut(rows, shuffle, sizes):
        out += bucket.epoch(epoch, T0 + timedelta(minutes=max(0, latest - DELAY)))
        latest = max([latest, *(row["at"] for row in epoch)])
    out += bucket.epoch([], datetime(9500, 1, 1, tzinfo=UTC))
    assert comparable(out) == comparable([timed(row) for row in oracle(rows)])
    assert bucket.blob is None


def test_by_arrival_it_would_depend_on_the_epochs() -> None:
    """The control: the later row arrives first, and deciding upon arrival would keep it."""
    rows = [{"user": "a", "n": 0, "at": 30}, {"user": "a", "n": 1, "at": 25}]
    bucket = Alone()
    assert bucket.epoch(rows[:1], T0) == []
    assert bucket.epoch(rows[1:], T0 + timedelta(minutes=15)) == []
    assert [row["n"] for row in bucket.epoch([], T0 + timedelta(minutes=60))] == [1]


def test_a_late_row_is_a_reject_and_changes_nothing() -> None:
    bucket = Alone()
    bucket.epoch([{"user": "a", "n": 0, "at": 30}], T0)
    (out, reject) = bucket.epoch([{"user": "a", "n": 1, "at": 20}], T0 + timedelta(minutes=40))
    assert (out["n"], out["_reject"]) == (0, None)
    assert reject["_reject"]["error"] == "late: its time is before the watermark"


@pytest.mark.spark
@settings(deadline=None, max_examples=2)
@given(
    st.lists(ROW, min_size=6, max_size=20),
    SHUFFLE,
    st.lists(st.integers(2, 6), max_size=2),
)
def test_on_spark_too(spark: Any, rows: list[Row], shuffle: list[int], sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream(spark, Path(folder), SCHEMA, delay=f"{DELAY} minutes")
        for epoch in cut(rows, shuffle, sizes):
            stream.add([timed(row) for row in epoch])
        stream.add([timed({"user": "end", "n": 0, "at": 1000})])
        out = flat(stream.run(Dedup(key="user", within=f"{WITHIN}m", buckets=3)))
    times = [{**row, "at": row["at"].replace(tzinfo=UTC)} for row in out]
    assert comparable(times) == comparable([timed(row) for row in oracle(rows)])


PIPELINE = """
sources:
  clicks:
    type: generator
    rows: 1000
    rows_per_epoch: 400
    fields:
      user: {type: choice, values: [ann, bob]}
      at: {type: timestamp, start: 2026-01-01T00:00:00Z, step: 1m}
    event_time: {column: at, watermark: 1m}
transforms:
  once: {type: dedup, from: clicks, key: user, within: 1h}
sinks:
  out: {type: memory, from: once}
"""


@pytest.mark.spark
def test_a_pipeline_with_an_end_gives_everything(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(PIPELINE)
    run(topology)
    rows = topology.node("out").component.rows()
    for user in ("ann", "bob"):
        times = sorted(row["at"] for row in rows if row["user"] == user)
        assert len(times) >= 1000 // 70
        assert all(later - earlier >= timedelta(hours=1) for earlier, later in pairwise(times))


def test_check_asks_for_an_event_time(pipeline: Callable) -> None:
    with pytest.raises(MillstreamError, match="MS037"):
        pipeline(PIPELINE.replace("    event_time: {column: at, watermark: 1m}\n", ""))
