"""Filters rows by a condition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.plan.changelog import op_of
from millstream.plan.components import NodeContext, Origins, Problem, Transform, unchanged
from millstream.plan.expressions import quote_column
from millstream.plan.options import Expression
from millstream.sql.analysed.isolation import isolate_rejects
from millstream.sql.catalyst.changelog import outcome, passing
from millstream.sql.catalyst.clock import freeze
from millstream.sql.check.changelog import names_op
from millstream.sql.check.expressions import row_problems
from millstream.sql.check.query import Query
from millstream.sql.expressions import only_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Filter(Transform):
    """Keeps the rows for which a condition is true. `now()` is the time of the epoch. On a changelog an update for which it is not true
    becomes a delete, and deletes pass, unless the condition names `_op` or changes are whole rows.
    """

    type: ClassVar[str] = "filter"
    shaped_by: ClassVar[frozenset[str]] = frozenset()
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Keep the rows that meet a condition."
    example: ClassVar[str] = """
        large:
          type: filter
          from: orders
          where: amount > 1000 AND user IS NOT NULL
    """

    where: Expression
    """The condition, in Spark SQL."""

    @property
    def deterministic(self) -> bool:
        return Query(self.where, None).deterministic

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        return only_schema(inputs)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return row_problems([("where", self.where)], only_schema(inputs))

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return unchanged(inputs)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        where, op = self.where, op_of(frame.columns)
        context.record_sql(where)
        plain = not op or names_op(where) or context.whole_rows
        kept = frame.alias("input").where(where) if plain else _changes(frame, where, op)
        kept = freeze(kept, context.clock)
        return isolate_rejects(kept, context.name) if context.isolate else kept


def _changes(frame: DataFrame, where: str, op: str) -> DataFrame:
    """Apply the condition to a changelog."""
    others = [quote_column(name) for name in frame.columns if name != op]
    return frame.alias("input").where(passing(where, op)).selectExpr(*others, f"{outcome(where, op)} AS {op}")
