"""Changes as frames: each row has a weight, +1 for a row that is added and -1 for a row that is removed.

The columns are called `c0`, `c1`, …: stored rows depend neither on the user's names nor on Spark's column ids. `_w` is the weight. `_h` is
a 64-bit hash of the key by which an operator works: rows are partitioned by it, and the keys that an epoch touches are found by it. Two
keys with the same hash only cause a few more rows to be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.map_values import has_maps, unwrapped, wrapped

WEIGHT, HASH = "_w", "_h"


def column_names(count: int) -> list[str]:
    return [f"c{index}" for index in range(count)]


def partitioned(frame: DataFrame, partitions: int) -> DataFrame:
    """The rows, where the hash of their key puts them."""
    return frame.repartition(partitions, F.col(HASH))


def union(frames: Iterable[DataFrame]) -> DataFrame:
    first, *others = frames
    names = first.columns if others else []
    return reduce(lambda left, right: left.union(right.selectExpr(*names)), others, first)


def consolidated(frame: DataFrame) -> DataFrame:
    """Equal rows as one row with the sum of their weights; none where the sum is 0."""
    return grouped(frame, f"sum({WEIGHT})").where(f"{WEIGHT} <> 0")


def grouped(frame: DataFrame, weight: str) -> DataFrame:
    """Equal rows as one row, whose weight is computed by SQL."""
    names = frame.columns
    kinds = {field.name: field.dataType for field in frame.schema.fields if has_maps(field.dataType)}
    rows = frame.selectExpr(*[f"{wrapped(name, kinds[name])} AS {name}" if name in kinds else name for name in names]) if kinds else frame
    found = rows.groupBy(*[name for name in names if name != WEIGHT]).agg(F.expr(f"{weight} AS {WEIGHT}"))
    # by text: a call of the JVM less for each column
    return found.selectExpr(*[f"{unwrapped(name, kinds[name])} AS {name}" if name in kinds else name for name in names])


def negated(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(*[f"-{WEIGHT} AS {WEIGHT}" if name == WEIGHT else name for name in frame.columns])


def touched_by(frames: Iterable[DataFrame]) -> DataFrame:
    """The hashes of the keys that changes touch."""
    return union(frame.select(HASH) for frame in frames).distinct()


def restricted(frame: DataFrame, hashes: DataFrame) -> DataFrame:
    """The rows whose key is touched."""
    keys = hashes.select(F.col(HASH).alias("_touched")).hint("shuffle_hash")
    return frame.join(keys, F.col(HASH) == F.col("_touched"), "left_semi")


def repeated(frame: DataFrame) -> DataFrame:
    """Each row as often as its weight says; the frame is consolidated."""
    columns = [name for name in frame.columns if name != WEIGHT]
    return frame.selectExpr(*columns, f"explode(array_repeat(1L, cast({WEIGHT} AS int))) AS {WEIGHT}")
