"""Selects and computes columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import BeforeValidator, Field

from millstream.plan.changelog import kept_columns
from millstream.plan.components import NodeContext, Origins, Problem, Transform, of_expressions
from millstream.plan.expressions import Expr, expr, quote_column
from millstream.plan.options import Expression
from millstream.sql.analysed.isolation import isolate_rejects
from millstream.sql.catalyst.clock import freeze
from millstream.sql.check.expressions import row_problems
from millstream.sql.check.query import Query
from millstream.sql.expressions import only_schema, types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _with_names(value: Any) -> Any:
    """`[id, amount * 2 AS double]` is `{id: id, double: amount * 2}`."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list | tuple):
        return value
    trees = [item.tree if isinstance(item, Expr) else expr(str(item)).tree for item in value]
    unnamed = [tree for tree in trees if not tree.alias_or_name]
    if unnamed:
        raise ValueError(f"`{Expr(unnamed[0])}` needs a name: write `{Expr(unnamed[0])} AS name`")
    return {tree.alias_or_name: str(Expr(tree.unalias())) for tree in trees}


class Select(Transform):
    """Returns the named columns, and the changelog columns (`_op`, `_seq`). `now()` is the time of the epoch."""

    type: ClassVar[str] = "select"
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Choose and compute columns."
    example: ClassVar[str] = """
        slim:
          type: select
          from: orders
          columns: {id: id, user: upper(user), cents: amount * 100}
    """

    columns: Annotated[dict[str, Expression], BeforeValidator(_with_names), Field(min_length=1)]
    """Column → expression in Spark SQL; or a list, such as `[id, amount * 100 AS cents]`."""

    @property
    def deterministic(self) -> bool:
        return all(Query(text, None).deterministic for text in self.columns.values())

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        return types_of(self._all_columns(schema.names), schema) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return row_problems([(f"columns.{name}", text) for name, text in self.columns.items()], only_schema(inputs))

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        schema = only_schema(inputs)
        return of_expressions(self._all_columns(schema.names), inputs) if schema is not None else None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        columns = [f"{text} AS {quote_column(name)}" for name, text in self._all_columns(frame.columns).items()]
        for text in columns:
            context.record_sql(text)
        chosen = freeze(frame.alias("input").selectExpr(*columns), context.clock)
        return isolate_rejects(chosen, context.name) if context.isolate else chosen

    def _all_columns(self, names: Iterable[str]) -> dict[str, str]:
        """The named columns, and the changelog columns."""
        return {**self.columns, **{name: name for name in kept_columns(names) if name not in self.columns}}
