"""The rows of a small epoch come to the driver, and those of a large one do not."""

from __future__ import annotations

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
    small.collect(epoch(spark, 0, 1))  # it learns the number of partitions
    for begin in (0, 100, 200):
        found = small.collect(epoch(spark, begin, begin + 100))
        assert found is not None and found.column("twice").to_pylist() == [2 * n for n in range(begin, begin + 100)]
    assert len(built) == 2


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
