"""A side output of a process function, as a separate stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.components import NodeContext, Transform
from millstream.plan.expressions import quote_column
from millstream.sql.analysed.isolation import without_rejects
from millstream.worker.output_batches import SIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Output(Transform):
    """The rows that a `process` node's function yields for one of its declared `outputs`. The node itself returns the other rows."""

    type: ClassVar[str] = "output"
    summary: ClassVar[str] = "Read a side output of a process function."
    example: ClassVar[str] = """
        alerts:
          type: output
          from: fraud
          output: alerts
    """
    reads_side_output: ClassVar[bool] = True

    side: str = Field(alias="output")
    """The name of the output, as the function's class declares it."""

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        return None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        ((name, frame),) = frames.items()
        if SIDE not in frame.columns:
            raise RunError(Diagnostic("MS074", f"`{name}` has no side outputs", help="`from` names a `process` node"))
        sides = [field.name for field in frame.schema[SIDE].dataType if field.name != "none"]  # type: ignore[attr-defined]  # a struct
        if self.side not in sides:
            raise RunError(Diagnostic("MS074", f"`{name}` has no output `{self.side}`", help=nearest(self.side, sides)))
        place = f"{SIDE}.{quote_column(self.side)}"
        rows = frame.where(f"{place} IS NOT NULL").selectExpr(f"{place}.*")
        return without_rejects(rows) if context.isolate else rows
