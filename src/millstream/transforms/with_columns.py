"""Columns added and replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.plan import types
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.options import Expression
from millstream.plan.query import Query, freeze_clock
from millstream.transforms.checks import only, row_problems, types_of
from millstream.transforms.isolation import isolated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WithColumns(Transform):
    """Keeps every column, adds new ones, and replaces those of the same name. The expressions see the columns as they come in.
    `now()` means the time of the epoch.
    """

    type: ClassVar[str] = "with_columns"
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Add columns, or replace them."
    example: ClassVar[str] = """
        enriched:
          type: with_columns
          from: orders
          columns: {day: to_date(at), user: lower(user)}
    """

    columns: Annotated[dict[str, Expression], Field(min_length=1)]
    """Column → expression in Spark SQL."""

    @property
    def deterministic(self) -> bool:
        return all(Query(text, None).deterministic for text in self.columns.values())

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only(inputs)
        if schema is None:
            return None
        found = types_of(self.columns, schema)
        new = {name: found.field(name).type if found is not None else types.UNKNOWN for name in self.columns}
        places = {name.lower(): name for name in schema.names}
        replaced = {places.get(name.lower(), name): kind for name, kind in new.items()}
        return pa.schema([pa.field(name, kind) for name, kind in ({field.name: field.type for field in schema} | replaced).items()])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return row_problems([(f"columns.{name}", text) for name, text in self.columns.items()], only(inputs))

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        (frame,) = frames.values()
        texts = {name: freeze_clock(text, context.clock) if context.clock else text for name, text in self.columns.items()}
        widened = frame.alias("input").withColumns({name: F.expr(text) for name, text in texts.items()})
        return isolated(widened, context.name) if context.isolate else widened
