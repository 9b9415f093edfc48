"""A function over buckets of keys, on Spark's `transformWithState`.

    rows → bucket = hash(key) mod B → packed into blobs → shuffled by bucket → visited → unpacked

One state value per bucket crosses to Python with the bucket's rows, where Spark by itself would make a round trip per key. The number
of buckets is part of the state's layout and fixed by the first start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.plan.changelog import SEQUENCE
from millstream.plan.components import NodeContext
from millstream.plan.options import Duration
from millstream.transforms.checks import quoted
from millstream.transforms.visits import BucketVisits, TimeMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WATERMARK = "spark.watermarkDelayMs"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A frame whose rows are to be visited by key."""

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
        """The column that the watermark is on; empty when there is none."""
        declared = self.context.event_time
        marked = [field.name for field in self.frame.schema if WATERMARK in (field.metadata or {})]
        return declared or (marked[0] if marked else "")

    @property
    def order(self) -> tuple[str, ...]:
        """Rows of a key come in the order of time, then of their place in the source."""
        return tuple(name for name in (self.event_time, SEQUENCE) if name in self.frame.columns)

    def visited(self, runner: Any, ticks: bool, produced: pa.Schema) -> DataFrame:
        """What comes out when a runner visits the buckets. Build it within `travelling`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        from millstream.transforms import buckets

        mode: TimeMode = "ProcessingTime" if ticks else "EventTime" if self.event_time else "None"
        directory = str(self.context.directory.resolve())
        timeout = self.timeout.milliseconds if self.timeout else None
        needed = (*self.keys, *self.required)
        visits: Any = BucketVisits(runner, self.context.name, directory, mode, bool(self.event_time), timeout, needed)
        packed = self._placed().mapInArrow(buckets.Packer().run, buckets.PACKED)
        grouped = packed.groupBy(buckets.BUCKET).transformWithState(visits, buckets.UNPACKED, "Append", mode)
        return grouped.mapInArrow(buckets.unpack, from_arrow_schema(produced, prefer_timestamp_ntz=True))

    def _placed(self) -> DataFrame:
        """Every row with its bucket (-1 when a part of the key is null, or what else may not be) and the epoch's time."""
        from millstream.transforms.buckets import BUCKET, NOW

        names = [quoted(name) for name in self.keys]
        null = " OR ".join(f"{quoted(name)} IS NULL" for name in (*self.keys, *self.required))
        bucket = f"CASE WHEN {null} THEN -1 ELSE pmod(hash({', '.join(names)}), {self.buckets}) END"
        return self.frame.selectExpr("*", f"CAST({bucket} AS int) AS {BUCKET}", f"unix_micros(current_timestamp()) AS {NOW}")


@contextmanager
def travelling() -> Iterator[None]:
    """Within this, what runs in the workers is pickled whole: they need not have Millstream."""
    from pyspark import cloudpickle

    pickling: Any = cloudpickle
    already = pickling.list_registry_pickle_by_value()
    modules = [module for module in _travellers() if module.__name__ not in already]
    for module in modules:
        pickling.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            pickling.unregister_pickle_by_value(module)


def _travellers() -> Sequence[Any]:
    from millstream import masking
    from millstream.plan import cells, processing, states
    from millstream.transforms import batches, buckets, deduplication, emitting, limits, remembering, turns, visits, wholes

    return [cells, masking, processing, states, batches, buckets, deduplication, emitting, limits, remembering, turns, visits, wholes]


def spark_types(schema: pa.Schema) -> pa.Schema:
    """The schema as Spark hands it to Python and takes it back."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    return to_arrow_schema(from_arrow_schema(schema, prefer_timestamp_ntz=True))
