"""A function over buckets of keys, on Spark's `transformWithState`.

    rows → bucket = hash(key) mod B → packed into blobs → shuffled by bucket → processed → unpacked

One state value per bucket is sent to Python with the bucket's rows; Spark's own API would make a round trip per key. The number
of buckets is part of the state's layout and fixed by the first start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.plan.changelog import SEQUENCE
from millstream.plan.components import NodeContext
from millstream.plan.expressions import quote_column
from millstream.plan.options import Duration
from millstream.worker.bucket_processor import BucketProcessor, TimeMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WATERMARK = "spark.watermarkDelayMs"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A frame whose rows are processed by key."""

    frame: DataFrame
    keys: tuple[str, ...]
    context: NodeContext
    buckets: int
    timeout: Duration | None = None
    required: tuple[str, ...] = ()
    """Further columns that may not be null."""

    @property
    def schema(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        return pa.schema([pa.field(field.name, field.type) for field in to_arrow_schema(self.frame.schema)])

    @property
    def event_time(self) -> str:
        """The column that has the watermark; empty when there is none."""
        declared = self.context.event_time
        marked = [field.name for field in self.frame.schema if WATERMARK in (field.metadata or {})]
        return declared or (marked[0] if marked else "")

    @property
    def order(self) -> tuple[str, ...]:
        """Rows of a key are ordered by time, then by their position in the source."""
        return tuple(name for name in (self.event_time, SEQUENCE) if name in self.frame.columns)

    def process(self, runner: Any, ticks: bool, produced: pa.Schema) -> DataFrame:
        """The output of a runner on all buckets. Build it inside `pickling.by_value`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from millstream.worker import buckets

        mode: TimeMode = "ProcessingTime" if ticks else "EventTime" if self.event_time else "None"
        directory = str(self.context.directory.resolve())
        timeout = self.timeout.milliseconds if self.timeout else None
        needed = (*self.keys, *self.required)
        bucket_processor: Any = BucketProcessor(runner, self.context.name, directory, mode, bool(self.event_time), timeout, needed)
        packed = self._with_buckets().mapInArrow(buckets.Packer().run, buckets.PACKED)
        grouped = packed.groupBy(buckets.BUCKET).transformWithState(bucket_processor, buckets.UNPACKED, "Append", mode)
        return grouped.mapInArrow(buckets.unpack, from_arrow_schema(produced, prefer_timestamp_ntz=True))

    def _with_buckets(self) -> DataFrame:
        """Every row with its bucket (-1 when a required column is null) and the epoch's time."""
        from millstream.worker.buckets import BUCKET, NOW

        names = [quote_column(name) for name in self.keys]
        null = " OR ".join(f"{quote_column(name)} IS NULL" for name in (*self.keys, *self.required))
        bucket = f"CASE WHEN {null} THEN -1 ELSE pmod(hash({', '.join(names)}), {self.buckets}) END"
        return self.frame.selectExpr("*", f"CAST({bucket} AS int) AS {BUCKET}", f"unix_micros(current_timestamp()) AS {NOW}")


def spark_types(schema: pa.Schema) -> pa.Schema:
    """The schema as Spark passes it to Python and back."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    return to_arrow_schema(from_arrow_schema(schema, prefer_timestamp_ntz=True))
