"""Removes columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.plan.components import NodeContext, Origins, Problem, Transform, unchanged
from millstream.plan.expressions import quote_column
from millstream.plan.options import Columns
from millstream.sql.analysed.isolation import without_rejects
from millstream.sql.expressions import only_schema, unknown_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Drop(Transform):
    """Removes columns and keeps the others."""

    type: ClassVar[str] = "drop"
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Remove columns."
    example: ClassVar[str] = """
        public:
          type: drop
          from: orders
          columns: [email, phone]
    """

    columns: Annotated[Columns, Field(min_length=1)]
    """The columns to remove."""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        return pa.schema([field for field in schema if not self._drops(field.name)]) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        schema = only_schema(inputs)
        found = unknown_names(self.columns, "columns", schema)
        if not found and schema is not None and all(self._drops(name) for name in schema.names):
            found.append(Problem("MS008", "no column would be left", "columns"))
        return found

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        found = unchanged(inputs)
        return {name: origins for name, origins in found.items() if not self._drops(name)} if found is not None else None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        left = frame.selectExpr(*(quote_column(name) for name in frame.columns if not self._drops(name)))
        return without_rejects(left) if context.isolate else left

    def _drops(self, name: str) -> bool:
        return name.lower() in {column.lower() for column in self.columns}
