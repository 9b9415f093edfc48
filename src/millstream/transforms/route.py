"""Routes rows to named branches by conditions.

The node itself only adds the name of the branch to every row, so that conditions are computed once and a reject is counted once; other
nodes read its branches (`branch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.plan import types
from millstream.plan.branches import DEFAULT
from millstream.plan.components import NodeContext, Origins, Problem, Transform, unchanged
from millstream.plan.options import Expression
from millstream.sql.analysed.isolation import isolate_rejects
from millstream.sql.catalyst.clock import freeze
from millstream.sql.check.changelog import names_op
from millstream.sql.check.expressions import row_problems
from millstream.sql.check.query import Query
from millstream.sql.expressions import only_schema, types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROUTE = "_route"
"""The column with the branch of a row, where every branch must remain a changelog."""
ROUTE_OF_OP = "_route_of_op"
"""The same, where a condition names `_op`: the user decides about updates and deletes."""


class Route(Transform):
    """Sends each row to one branch: the first whose condition is true. A row for which every condition is false or null goes to the
    branch `default`. Other nodes read a branch as `NODE.BRANCH`; the node itself cannot be read. Branches without a reader do not run,
    and `check` warns that their rows are dropped. `now()` is the time of the epoch.

    On a changelog, an update that moves a row to another branch is a delete in the branches that the row leaves, and deletes go to every
    branch. Where a condition names `_op`, each row goes only to the branch that the conditions choose.
    """

    type: ClassVar[str] = "route"
    shaped_by: ClassVar[frozenset[str]] = frozenset()
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Send each row to one of several branches."
    example: ClassVar[str] = """
        by_size:
          type: route
          from: orders
          routes:
            large: amount >= 1000
            small: amount < 1000
        # read as by_size.large, by_size.small and by_size.default
    """

    routes: Annotated[dict[str, Expression], Field(min_length=1)]
    """Branch → condition in Spark SQL, in the order in which they are tried."""

    @property
    def branches(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.routes, DEFAULT]))

    @property
    def deterministic(self) -> bool:
        return all(Query(text, None).deterministic for text in self.routes.values())

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        return schema.append(pa.field(self._column, pa.string())) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        schema, found = only_schema(inputs), []
        if DEFAULT in self.routes:
            message = f"`{DEFAULT}` is the branch for rows that match no route, and takes no condition"
            found.append(Problem("MS017", message, f"routes.{DEFAULT}", "give the route another name, or remove it"))
        for taken in {ROUTE, ROUTE_OF_OP} & set(schema.names if schema is not None else ()):
            message = f"the input has a column `{taken}`, which is reserved for routes"
            found.append(Problem("MS017", message, "from", "rename the column"))
        for name, text in self.routes.items():
            found += row_problems([(f"routes.{name}", text)], schema) or _not_a_condition(name, text, schema)
        return found

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return unchanged(inputs)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        (frame,) = frames.values()
        for text in self.routes.values():
            context.record_sql(text)
        chosen = F.lit(DEFAULT)
        for name, text in reversed(self.routes.items()):
            chosen = F.when(F.expr(text), F.lit(name)).otherwise(chosen)
        rows = frame.alias("input")
        routed = freeze(rows.withColumns({self._column: chosen}), context.clock)
        if not context.isolate:
            return routed
        conditions = rows.select(*[F.expr(text).alias(name) for name, text in self.routes.items()])
        return isolate_rejects(routed, context.name, freeze(conditions, context.clock))

    @property
    def _column(self) -> str:
        return ROUTE_OF_OP if any(names_op(text) for text in self.routes.values()) else ROUTE


def _not_a_condition(name: str, text: str, schema: pa.Schema | None) -> list[Problem]:
    """An expression that is neither true nor false, as far as its type is known here."""
    kinds = types_of({name: text}, schema) if schema is not None else None
    wrong = [field for field in kinds or () if not (pa.types.is_boolean(field.type) or field.type in (types.UNKNOWN, pa.null()))]
    return [
        Problem("MS008", f"branch `{name}` needs a condition, and this is {types.name_of(field.type)}", f"routes.{name}") for field in wrong
    ]
