"""One row per key and span of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.plan.changelog import SEQUENCE
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.options import Columns, Duration
from millstream.transforms.checks import only
from millstream.transforms.deduplication import KEPT, Deduplication
from millstream.transforms.emitting import SIDE, Shape
from millstream.transforms.inspection import shown
from millstream.transforms.keys import flat_key_problems
from millstream.transforms.stateful import Keyed, travelling
from millstream.transforms.wholes import WholeRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Dedup(Transform):
    """Keeps the first row of each key by event time and drops the others up to `within` after it; then the next one is kept, and so on.

    A row comes out once the watermark has passed its time, so that the result is the same however rows arrive and epochs are cut. Rows
    that are later than the watermark are dropped, or are rejects with `on_error`. Rows of one key and one time are told apart by `_seq` if
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
    dear: ClassVar[bool] = True
    side_column: ClassVar[str] = SIDE

    key: Annotated[Columns, Field(min_length=1)]
    """Rows with equal values in these columns are the same thing. Not null, and neither floats nor nested values."""
    within: Duration
    """How long after a kept row others of its key are dropped."""
    buckets: int = Field(default=32, ge=1, le=10_000)
    """Keys are spread over so many buckets; the state of a bucket is read and written as a whole. Fixed by the first start."""

    @property
    def stateful(self) -> bool:
        return True

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        return only(inputs)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return flat_key_problems(self.key, "key", inputs)

    def remembered(self, spark: SparkSession, url: str, node: str) -> Iterator[dict[str, Any]]:
        return shown(spark, url, node)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        time = Keyed(frame, self.key, context, self.buckets).event_time
        if not time:
            raise RunError(Diagnostic("MS037", f"`{context.name}` needs event time", help="declare `event_time` on a node above it"))
        keyed = Keyed(frame, self.key, context, self.buckets, required=(time,))
        schema = keyed.schema
        ties = tuple(name for name in sorted(schema.names, key=lambda name: name != SEQUENCE) if name not in {time, *self.key})
        function = Deduplication(time, ties, self.within.milliseconds * 1000)
        states = schema.append(pa.field(KEPT, pa.bool_()))
        with travelling():
            shape = Shape(schema, {}, context.isolate)
            return keyed.visited(WholeRunner(function, self.key, schema, states, shape, ()), False, shape.schema)
