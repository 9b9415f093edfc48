"""The last row of each key in an epoch: a keyed sink needs only that row.

`_seq` gives the order where the column exists. Otherwise the row's position does: rows that were not shuffled are in the order of their
source, partition by partition.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from millstream.plan.changelog import SEQUENCE
from millstream.plan.expressions import quote_column

_PLACE, _RANK = "_millstream_place", "_millstream_rank"


def last_per_key(frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """One row for each key."""
    order = [F.col(SEQUENCE).desc_nulls_last()] if SEQUENCE in frame.columns else []
    columns = frame.columns
    window = Window.partitionBy(*[_column(name) for name in key]).orderBy(*order, F.col(_PLACE).desc())
    ranked = frame.withColumn(_PLACE, F.monotonically_increasing_id()).withColumn(_RANK, F.row_number().over(window))
    return ranked.where(F.col(_RANK) == 1).select(*[_column(name) for name in columns])


def _column(name: str) -> Column:
    return F.col(quote_column(name))
