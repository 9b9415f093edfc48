"""The rows of a small epoch come to the driver, and those of a large one do not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.small_rows import SMALL_BYTES, SmallRows

pytestmark = pytest.mark.spark


def doubled(frame: DataFrame) -> tuple[DataFrame, Column]:
    text = F.repeat(F.lit("x"), F.col("id").cast("int"))
    return frame.select((F.col("id") * 2).alias("twice"), text.alias("text")), F.octet_length("text")


def epoch(spark: SparkSession, begin: int, end: int, partitions: int = 2) -> DataFrame:
    """Rows as an epoch gives them: a leaf over an RDD."""
    bridge, rows = Bridge(spark), spark.range(begin, end, 1, partitions)
    return bridge.frame(bridge.leaf(bridge.analysed_as_is(rows).output(), bridge.rdd(rows)))


def test_rows_come_in_their_order_and_are_planned_once(spark: SparkSession) -> None:
    built = []

    def build(frame: DataFrame) -> tuple[DataFrame, Column]:
        built.append(frame)
        return doubled(frame)

    small = SmallRows(build)
    for begin in (0, 100, 200):
        found = small.collect(epoch(spark, begin, begin + 100))
        assert found is not None and found.column("twice").to_pylist() == [2 * n for n in range(begin, begin + 100)]
    assert len(built) == 1


def test_steps_below_the_leaf_are_planned_each_time(spark: SparkSession) -> None:
    small = SmallRows(doubled)
    for begin in (0, 10):
        found = small.collect(epoch(spark, begin, begin + 10).where("id % 2 = 0"))
        assert found is not None and found.column("twice").to_pylist() == [2 * n for n in range(begin, begin + 10, 2)]


def test_no_rows_are_small(spark: SparkSession) -> None:
    found = SmallRows(doubled).collect(epoch(spark, 0, 0))
    assert found is not None and found.num_rows == 0


def test_many_rows_and_a_large_row_are_not_collected(spark: SparkSession) -> None:
    small = SmallRows(lambda frame: (frame, F.lit(8)))
    assert small.collect(epoch(spark, 0, 100_000)) is None and not small.expected
    small = SmallRows(doubled)
    assert small.collect(epoch(spark, 16_380, 16_390)) is None and not small.expected


def test_all_rows_are_computed_even_if_few_come_back(spark: SparkSession) -> None:
    seen = spark.sparkContext.accumulator(0)
    rows = spark.range(0, 100_000, 1, 2).rdd.map(lambda row: (seen.add(1), row)[1]).toDF()
    assert SmallRows(lambda frame: (frame, F.lit(8))).collect(rows) is None
    assert seen.value >= 100_000


def test_after_a_large_epoch_the_next_must_be_much_smaller() -> None:
    small = SmallRows(doubled)
    for size, expected in ((SMALL_BYTES, True), (SMALL_BYTES + 1, False), (SMALL_BYTES // 2, False), (SMALL_BYTES // 4, True)):
        small.learn(size)
        assert small.expected is expected


def test_a_first_epoch_with_many_partitions_brings_few_bytes(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog: no partition has many rows or large ones, but all together are large."""
    brought: list[int] = []
    read = pa.ipc.read_record_batch
    monkeypatch.setattr(pa.ipc, "read_record_batch", lambda data, schema: brought.append(data.size) or read(data, schema))
    for kept in (False, True):
        rows = epoch(spark, 0, 128_000, 64).select(F.repeat(F.lit("x"), 1000).alias("text"))
        frame = rows.persist() if kept else Bridge(spark).frame(leaf_of(spark, rows))
        assert SmallRows(lambda frame: (frame, F.octet_length("text"))).collect(frame) is None
        frame.unpersist()
    assert 0 < sum(brought) < 8 * SMALL_BYTES


def leaf_of(spark: SparkSession, rows: DataFrame) -> Any:
    bridge = Bridge(spark)
    return bridge.leaf(bridge.analysed_as_is(rows).output(), bridge.rdd(rows))


def test_after_vain_attempts_fewer_epochs_are_tried(spark: SparkSession) -> None:
    """Small epochs with one large row: their bytes alone would have each of them tried."""
    small, tried = SmallRows(doubled), []
    for number in range(40):
        if small.is_tried():
            tried.append(number)
            assert small.collect(epoch(spark, 16_390, 16_391, 1)) is None
            small.learn(20_000)
    assert tried == [0, 2, 5, 10, 19, 36]
    small = SmallRows(doubled)
    for _ in range(3):
        assert small.is_tried() and small.collect(epoch(spark, 0, 10)) is not None
