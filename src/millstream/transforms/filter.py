"""Rows that meet a condition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.options import Expression
from millstream.plan.query import Query, freeze_clock
from millstream.transforms.checks import only, unknown_columns
from millstream.transforms.isolation import isolated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Filter(Transform):
    """Keeps the rows for which a condition is true. `now()` means the time of the epoch."""

    type: ClassVar[str] = "filter"
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
        return only(inputs)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return unknown_columns([("where", self.where)], only(inputs))

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        kept = frame.alias("input").where(freeze_clock(self.where, context.clock) if context.clock else self.where)
        return isolated(kept, context.name) if context.isolate else kept
