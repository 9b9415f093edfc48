"""Columns chosen and computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import BeforeValidator, Field

from millstream.plan.changelog import carried
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.expressions import Expr, sql
from millstream.plan.options import Expression
from millstream.plan.query import Query, freeze_clock
from millstream.transforms.checks import only, quoted, row_problems, types_of
from millstream.transforms.isolation import isolated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _named(value: Any) -> Any:
    """`[id, amount * 2 AS double]` is `{id: id, double: amount * 2}`."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, list | tuple):
        return value
    trees = [item.tree if isinstance(item, Expr) else sql(str(item)).tree for item in value]
    unnamed = [tree for tree in trees if not tree.alias_or_name]
    if unnamed:
        raise ValueError(f"`{Expr(unnamed[0])}` needs a name: write `{Expr(unnamed[0])} AS name`")
    return {tree.alias_or_name: str(Expr(tree.unalias())) for tree in trees}


class Select(Transform):
    """Gives the columns that are named, and no others but those of a changelog (`_op`, `_seq`). `now()` means the time of the epoch."""

    type: ClassVar[str] = "select"
    real_time: ClassVar[bool] = True
    summary: ClassVar[str] = "Choose and compute columns."
    example: ClassVar[str] = """
        slim:
          type: select
          from: orders
          columns: {id: id, user: upper(user), cents: amount * 100}
    """

    columns: Annotated[dict[str, Expression], BeforeValidator(_named), Field(min_length=1)]
    """Column → expression in Spark SQL; or a list, such as `[id, amount * 100 AS cents]`."""

    @property
    def deterministic(self) -> bool:
        return all(Query(text, None).deterministic for text in self.columns.values())

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only(inputs)
        return types_of(self._kept(schema.names), schema) if schema is not None else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return row_problems([(f"columns.{name}", text) for name, text in self.columns.items()], only(inputs))

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        wanted = self._kept(frame.columns)
        texts = {name: freeze_clock(text, context.clock) if context.clock else text for name, text in wanted.items()}
        chosen = frame.alias("input").selectExpr(*(f"{text} AS {quoted(name)}" for name, text in texts.items()))
        return isolated(chosen, context.name) if context.isolate else chosen

    def _kept(self, names: Iterable[str]) -> dict[str, str]:
        """The columns that are named, and those that travel by themselves."""
        return {**self.columns, **{name: name for name in carried(names) if name not in self.columns}}
