"""One branch of a route, as a separate stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.plan.changelog import op_of
from millstream.plan.components import NodeContext, Origins, Transform, unchanged
from millstream.plan.expressions import quote_column
from millstream.sql.analysed.isolation import without_rejects
from millstream.sql.catalyst.changelog import outcome, passing
from millstream.sql.expressions import only_schema
from millstream.transforms.route import ROUTE, ROUTE_OF_OP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Branch(Transform):
    """The rows that a `route` sends to one of its branches. Every branch exists by default as `ROUTE.BRANCH`; write a block only to give
    it another name or options, such as an `event_time`.
    """

    type: ClassVar[str] = "branch"
    shaped_by: ClassVar[frozenset[str]] = frozenset()
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Read one branch of a route."
    example: ClassVar[str] = """
        large_orders:
          type: branch
          from: by_size
          branch: large
    """

    of_route: str = Field(alias="branch")
    """The name of the branch."""

    @property
    def reads_branch(self) -> str:
        return self.of_route

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        return pa.schema([field for field in schema if field.name not in {ROUTE, ROUTE_OF_OP}]) if schema is not None else None

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return unchanged(inputs)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        column = ROUTE if ROUTE in frame.columns else ROUTE_OF_OP
        chosen, op = f"{column} = '{self.of_route}'", op_of(frame.columns) if column == ROUTE and not context.whole_rows else ""
        kept = [quote_column(name) for name in frame.columns if name not in {column, op}]
        rows = (
            frame.where(passing(chosen, op)).selectExpr(*kept, f"{outcome(chosen, op)} AS {op}") if op else frame.where(chosen).drop(column)
        )
        return without_rejects(rows) if context.isolate else rows
