"""Random events, windows, lateness and epoch cuts: the stream equals a batch, row for row, and what is late is what Spark's rule says."""

import tempfile
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.stateful.conftest import START, at

from millstream import EventTime, MemorySink, MemorySource, Settings, SlidingWindow, StreamEnvironment, TumblingWindow, count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300)), min_size=1, max_size=12)
FEW = settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def run(spark: "SparkSession", events: list[tuple[int, int]], size: int, epoch: int, late: Any, watermark: int) -> tuple[Counter[Any], int]:
    with tempfile.TemporaryDirectory() as folder:
        env = StreamEnvironment("p", spark=spark, settings=Settings(checkpoint=folder))
        source = MemorySource(rows=tuple({"k": k, "at": at(s)} for k, s in events), rows_per_epoch=epoch)
        stream = env.from_source(source, "events", event_time=EventTime("at", watermark=f"{watermark}s"))
        window = TumblingWindow.of(f"{size}s") if size % 2 else SlidingWindow.of(f"{size}s", f"{size // 2}s")
        sink = MemorySink()
        report = stream.key_by("k").window(window).aggregate(n=count(), late=late, name="counted").to(sink).execute()
        rows = sink.table().to_pylist()
        return Counter({(r["k"], r["window_start"], r["n"]): 1 for r in rows}), report.nodes["counted"].late


def windows(second: int, size: int) -> list[int]:
    """Starts of the windows that a second falls in, counted from 1970 as Spark does."""
    slide, base = size if size % 2 else size // 2, int(START.timestamp())
    last = (second + base) // slide * slide - base
    return [start for start in range(last, last - size, -slide) if start <= second < start + size]


def oracle(events: list[tuple[int, int]], size: int, epoch: int, watermark: int | None) -> tuple[Counter[Any], int]:
    """What comes out, and how many rows miss a window. A row is late when a window of it closed before the epoch ahead of its own."""
    counts: Counter[Any] = Counter()
    late, clock = 0, [float("-inf"), float("-inf")]
    for index in range(0, len(events), epoch):
        rows = events[index : index + epoch]
        for key, second in rows:
            starts = windows(second, size)
            missed = [start for start in starts if watermark is not None and start + size <= clock[0]]
            late += bool(missed)
            counts.update((key, start) for start in starts if start not in missed)
        latest = max(second for _, second in rows) - (watermark or 0)
        clock = [clock[1], max(clock[1], latest)]
    return Counter({(key, START + timedelta(seconds=start), n): 1 for (key, start), n in counts.items()}), late


@FEW
@given(events=EVENTS, size=st.sampled_from([30, 41]), epoch=st.integers(1, 5))
def test_a_bounded_stream_equals_a_batch(spark: "SparkSession", events: list[tuple[int, int]], size: int, epoch: int) -> None:
    assert run(spark, events, size, epoch, None, 5) == oracle(events, size, epoch, None)


@FEW
@given(events=EVENTS, size=st.sampled_from([30, 41]), epoch=st.integers(1, 3), watermark=st.sampled_from([0, 20]))
def test_late_rows_are_those_that_miss_a_window(
    spark: "SparkSession", events: list[tuple[int, int]], size: int, epoch: int, watermark: int
) -> None:
    assert run(spark, events, size, epoch, "drop", watermark) == oracle(events, size, epoch, watermark)
