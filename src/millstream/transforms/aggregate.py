"""Running totals per key, without a window: Spark's update mode, which gives a changelog by key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.plan.changelog import OP
from millstream.plan.components import NodeContext, OutputMode, Problem, Transform
from millstream.plan.options import Columns
from millstream.transforms.checks import only, quoted
from millstream.transforms.keys import key_problems, keyed, with_rejects
from millstream.transforms.totals import Aggregates, aggregate_problems, columns_of, output_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Aggregate(Transform):
    """Adds rows up per key, for ever. Each epoch gives the new totals of the keys that it touched, as a changelog: `_op` is `u`, and the
    key identifies the row, so that a sink with a primary key holds the totals. One row per key is kept as state.
    """

    type: ClassVar[str] = "aggregate"
    summary: ClassVar[str] = "Keep running totals per key."
    example: ClassVar[str] = """
        totals:
          type: aggregate
          from: orders
          key_by: [user]
          aggregate: {spent: sum(amount), orders: count(*)}
    """

    key_by: Columns = ()
    """The columns that say which rows belong together. Default: all rows do."""
    aggregate: Aggregates
    """Name → aggregate, such as `total: sum(amount)`."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def output_mode(self) -> OutputMode:
        return "update"

    @property
    def identity(self) -> tuple[str, ...]:
        return self.key_by

    def reads(self, input_name: str, isolating: bool) -> int:
        return 2 if isolating and self.key_by else 1

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = output_of(self.key_by, [], self.aggregate, only(inputs))
        return schema.append(pa.field(OP, pa.string())) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return [*key_problems(self.key_by, "key_by", inputs), *aggregate_problems(self.aggregate, (*self.key_by, OP), only(inputs))]

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        ((_, frame),) = frames.items()
        rows, rejects = keyed(frame, self.key_by, context)
        time = quoted(context.event_time) if context.event_time else ""
        totals = rows.groupBy(*[F.col(quoted(key)) for key in self.key_by]).agg(*columns_of(self.aggregate, time, context.aggregates))
        return with_rejects(totals.withColumn(OP, F.lit("u")), rejects, context)
