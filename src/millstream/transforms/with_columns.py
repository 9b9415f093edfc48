"""Adds and replaces columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.plan import types
from millstream.plan.components import NodeContext, Origins, Problem, Transform, of_expressions, unchanged
from millstream.plan.options import Expression
from millstream.sql.analysed.isolation import isolate_rejects
from millstream.sql.catalyst.clock import freeze
from millstream.sql.check.expressions import row_problems
from millstream.sql.check.query import Query
from millstream.sql.expressions import only_schema, types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WithColumns(Transform):
    """Keeps every column, adds new ones, and replaces those of the same name. Expressions read the input columns. `now()` is the time of
    the epoch.
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
        schema = only_schema(inputs)
        if schema is None:
            return None
        found = types_of(self.columns, schema)
        new = {name: found.field(name).type if found is not None else types.UNKNOWN for name in self.columns}
        places = {name.lower(): name for name in schema.names}
        replaced = {places.get(name.lower(), name): kind for name, kind in new.items()}
        return pa.schema([pa.field(name, kind) for name, kind in ({field.name: field.type for field in schema} | replaced).items()])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return row_problems([(f"columns.{name}", text) for name, text in self.columns.items()], only_schema(inputs))

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        before, new = unchanged(inputs), of_expressions(self.columns, inputs)
        return {**before, **new} if before is not None and new is not None else None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        (frame,) = frames.values()
        for text in self.columns.values():
            context.record_sql(text)
        widened = freeze(frame.alias("input").withColumns({name: F.expr(text) for name, text in self.columns.items()}), context.clock)
        return isolate_rejects(widened, context.name) if context.isolate else widened
