"""Running totals per key, without a window: Spark's update mode, which produces a changelog by key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.keyed.keys import key_problems, split_null_keys, with_rejects
from millstream.plan.changelog import OP
from millstream.plan.components import ONCE, Expiring, NodeContext, Origins, OutputMode, Problem, of_expressions
from millstream.plan.expressions import quote_column
from millstream.plan.options import Columns
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.expressions import only_schema
from millstream.sql.totals import Aggregates, aggregate_problems, columns_of, output_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Aggregate(Expiring):
    """Aggregates rows per key, without an end. Each epoch emits the new totals of the keys that it touched, as a changelog: `_op` is
    `u`, and the key identifies the row, so that a sink with a primary key holds the totals. The state has one row per key. Over a
    changelog, or over another node that keeps state, the totals are kept up to date as SQL is: `docs/sql.md`.
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
    """The columns of the key. Default: all rows belong to one group."""
    aggregate: Aggregates
    """Name → aggregate, such as `total: sum(amount)`."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def output_mode(self) -> OutputMode:
        return "append" if self.incremental else "update"

    @property
    def needs_event_time(self) -> bool:
        return False

    @property
    def incremental(self) -> bool:
        return self._over_changes or self._over_state or self.ttl is not None

    @property
    def why_incremental(self) -> str:
        if self.final:
            return ONCE
        if self._over_changes or self._over_state:
            return "an input is a changelog" if self._over_changes else "totals over a node that keeps state"
        return "its rows expire" if self.ttl is not None else ""

    @property
    def result_key(self) -> tuple[str, ...]:
        return self.key_by

    def reads(self, input_name: str, isolating: bool) -> int:
        return 2 if isolating and self.key_by else 1

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = output_of(self.key_by, [], self.aggregate, only_schema(inputs))
        return schema.append(pa.field(OP, pa.string())) if schema is not None and not self.final else schema

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return [*key_problems(self.key_by, "key_by", inputs), *aggregate_problems(self.aggregate, (*self.key_by, OP), only_schema(inputs))]

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        keys, totals = of_expressions({key: key for key in self.key_by}, inputs), of_expressions(self.aggregate, inputs, "AGGREGATION")
        return {**keys, **totals} if keys is not None and totals is not None else None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        ((_, frame),) = frames.items()
        rows, rejects = split_null_keys(frame, self.key_by, context)
        time = quote_column(context.event_time) if context.event_time else ""
        columns = columns_of(Bridge(frame.sparkSession), self.aggregate, time, context.aggregates)
        totals = rows.groupBy(*[F.col(quote_column(key)) for key in self.key_by]).agg(*columns)
        return totals if context.relational or self.final else with_rejects(totals.withColumn(OP, F.lit("u")), rejects, context)
