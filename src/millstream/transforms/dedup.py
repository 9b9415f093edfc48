"""Deduplication: one row per key and span of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.keyed.keys import flat_key_problems
from millstream.keyed.operator import Keyed
from millstream.keyed.state_reader import readable_state
from millstream.plan.changelog import SEQUENCE
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.options import Columns, Duration
from millstream.sql.expressions import only_schema
from millstream.worker.deduplication import KEPT, Deduplication
from millstream.worker.output_batches import SIDE, OutputShape
from millstream.worker.table_runner import TableRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Dedup(Transform):
    """Keeps the first row of each key by event time and drops the others up to `within` after it; then keeps the next one, and so on.

    A row is emitted when the watermark has passed its time, so the result depends neither on the order of arrival nor on epoch boundaries.
    Rows older than the watermark are late: dropped, or rejects with `on_error`. Rows with the same key and time are ordered by `_seq` if
    there is such a column, then by the other columns.
    """

    type: ClassVar[str] = "dedup"
    shaped_by: ClassVar[frozenset[str]] = frozenset()
    summary: ClassVar[str] = "Keep one row per key and span of event time."
    example: ClassVar[str] = """
        once:
          type: dedup
          from: clicks
          key: [user]
          within: 1d
    """
    expensive: ClassVar[bool] = True
    side_column: ClassVar[str] = SIDE

    key: Annotated[Columns, Field(min_length=1)]
    """Rows with equal values in these columns are duplicates. Not null, and neither floats nor nested values."""
    within: Duration
    """How long after a kept row others of its key are dropped."""
    buckets: int = Field(default=32, ge=1, le=10_000)
    """The number of buckets for keys; the state of a bucket is read and written as a whole. Fixed by the first start."""

    @property
    def stateful(self) -> bool:
        return True

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        return only_schema(inputs)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return flat_key_problems(self.key, "key", inputs)

    def read_state(self, spark: SparkSession, url: str, node: str) -> Iterator[dict[str, Any]]:
        return readable_state(spark, url, node)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        time = Keyed(frame, self.key, context, self.buckets).event_time
        if not time:
            raise RunError(Diagnostic("MS037", f"`{context.name}` needs event time", help="declare `event_time` on a node above it"))
        split_null_keys = Keyed(frame, self.key, context, self.buckets, required=(time,))
        schema = split_null_keys.schema
        ties = tuple(name for name in sorted(schema.names, key=lambda name: name != SEQUENCE) if name not in {time, *self.key})
        function = Deduplication(time, ties, self.within.milliseconds * 1000)
        states = schema.append(pa.field(KEPT, pa.bool_()))
        with by_value():
            shape = OutputShape(schema, {}, context.isolate)
            return split_null_keys.process(TableRunner(function, self.key, schema, states, shape, ()), False, shape.schema)
