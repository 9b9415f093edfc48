"""Collects the rows of a small frame into the driver, with the one job that computes them.

Spark cannot limit a collected result by its bytes, so the frame is guarded: of each partition only the first rows come back, and one more
row without values tells that there were others. A large row comes back without values, too. All rows are computed in any case, so that
Spark's counts and its state are those of the whole epoch.
Rows come as Arrow batches through Py4J: for small results that is as fast as a socket of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SMALL_BYTES = 4 << 20
"""The most bytes of a small epoch."""
_ROWS, _LEAST_ROWS = 16_384, 512
"""The most rows of a small epoch, divided among its partitions; and the least for one of them."""
_ROW_BYTES = 16 << 10
_PLACE_BITS = (1 << 33) - 1
"""`monotonically_increasing_id` counts the rows of a partition in these bits."""
_MANAGER = "org$apache$spark$sql$classic$ObservationManager"
_ROW, _PLACE = "_millstream_row", "_millstream_index"


@dataclass(slots=True)
class Expectation:
    """What a sink expects of its next epoch: it is like the last one."""

    small: bool = True
    partitions: int = 1
    """The most that a collected frame has had."""

    def learn(self, size: int) -> None:
        """Learn the bytes of an epoch. After a large one, an epoch must be much smaller before the next one is expected to be small."""
        self.small = size <= (SMALL_BYTES if self.small else SMALL_BYTES // 4)


def collect_small(frame: DataFrame, size: Column | str, expectation: Expectation, row: str = "struct(*)") -> pa.Table | None:
    """The rows in their order, if they are few and small; `size` is that of a row in bytes (fastest as SQL), `row` an expression for other
    columns of it. None: compute them in another way.
    """
    guarded = _guard(frame, row, size, max(_LEAST_ROWS, _ROWS // expectation.partitions))
    rdd = guarded._jdf.toArrowBatchRdd()
    batches = rdd.collect()
    expectation.partitions = max(expectation.partitions, int(rdd.getNumPartitions()))
    _report_observations(guarded)
    table = _table(guarded, [bytes(batches[number]) for number in range(len(batches))])
    expectation.small = table.column(_ROW).null_count == 0
    if not expectation.small:
        return None
    found = pa.Table.from_struct_array(table.column(_ROW))
    expectation.learn(found.nbytes)
    return found


def _report_observations(frame: DataFrame) -> None:
    """Complete what Spark has observed in the plan of a frame: Spark does that itself for queries, and this was a job below them."""
    manager = frame.sparkSession._jsparkSession.observationManager()
    getattr(manager, f"{_MANAGER}$$tryComplete")(frame._jdf.queryExecution())


def _guard(frame: DataFrame, row: str, size: Column | str, limit: int) -> DataFrame:
    """The first rows of each partition, and a null for those that are left out: one for all that are too many, one for each that is
    large. Every step is analysed by Spark, so they are few; and texts, since each of Spark's Python columns costs several calls to the JVM.
    """
    from pyspark.sql import functions as F

    place = f"monotonically_increasing_id() & {_PLACE_BITS}L"
    if isinstance(size, str):
        rows = frame.selectExpr(f"CASE WHEN {place} < {limit} AND {size} <= {_ROW_BYTES} THEN {row} END AS {_ROW}", f"{place} AS {_PLACE}")
    else:
        kept = F.when((size <= _ROW_BYTES) & F.expr(f"{place} < {limit}"), F.expr(row))
        rows = frame.select(kept.alias(_ROW), F.expr(f"{place} AS {_PLACE}"))
    return rows.where(f"{_PLACE} <= {limit}")


def _table(frame: DataFrame, batches: list[Any]) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(batch), schema) for batch in batches], schema)
