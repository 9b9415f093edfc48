"""Shared by aggregating transforms: the aggregates as options, their types, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
from pydantic import Field
from sqlglot import exp

from millstream.plan import types
from millstream.plan.components import Problem
from millstream.plan.expressions import expr
from millstream.plan.options import Expression
from millstream.sql.catalyst.aggregates import stream_aggregates
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.catalyst.calls import rewrite_expression
from millstream.sql.catalyst.user_aggregates import collecting
from millstream.sql.check.aggregates import with_own_types
from millstream.sql.check.expressions import unknown_columns
from millstream.sql.expressions import types_of

if TYPE_CHECKING:
    from pyspark.sql import Column

Aggregates = Annotated[dict[str, Expression], Field(min_length=1)]
_NUMERIC = (exp.Sum, exp.Avg, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Median)


def columns_of(bridge: Bridge, aggregates: Mapping[str, str], time: str = "", functions: tuple[str, ...] = ()) -> list[Column]:
    """The aggregates as columns; `functions` are the user's own, which receive collected lists."""
    rewrites = {**stream_aggregates(time), **collecting(functions)}
    found = {name: rewrite_expression(bridge, bridge.expression(text), rewrites) for name, text in aggregates.items()}
    return [bridge.column(expression).alias(name) for name, expression in found.items()]


def aggregate_problems(aggregates: Mapping[str, str], taken: tuple[str, ...], schema: pa.Schema | None) -> list[Problem]:
    """Duplicate names, unknown columns, values that cannot be summed, and expressions that are not aggregates."""
    found = [
        Problem("MS020", f"two columns would be called `{name}`", f"aggregate.{name}", "give the aggregate another name")
        for name in aggregates
        if name in taken
    ]
    found += unknown_columns([(f"aggregate.{name}", text) for name, text in aggregates.items()], schema)
    for name, text in aggregates.items():
        tree = expr(text).tree
        if not any(isinstance(node, exp.AggFunc | exp.Anonymous) for node in tree.walk()):
            help_ = "write one such as `sum(amount)`, `count(*)` or `max(at)`"
            found.append(Problem("MS029", f"`{text}` is not an aggregate", f"aggregate.{name}", help_))
        elif schema is not None:
            found += [_not_a_number(node, name, schema) for node in tree.find_all(*_NUMERIC) if _kind(node, schema) is not None]
    return found


def output_of(keys: tuple[str, ...], extra: list[pa.Field], aggregates: Mapping[str, str], schema: pa.Schema | None) -> pa.Schema | None:
    """Key columns, the transform's own columns, and the aggregates with their types where known."""
    if schema is None or any(key not in schema.names for key in keys):
        return None
    computed = types_of({name: with_own_types(text) for name, text in aggregates.items()}, schema)
    totals = list(computed) if computed is not None else [pa.field(name, types.UNKNOWN) for name in aggregates]
    return pa.schema([*(schema.field(key) for key in keys), *extra, *totals])


def _kind(node: exp.Expr, schema: pa.Schema) -> pa.DataType | None:
    """The type of the column that an aggregate sums, if it is not a number."""
    inner = node.this
    index = schema.get_field_index(inner.name) if isinstance(inner, exp.Column) and len(inner.parts) == 1 else -1
    kind = schema.field(index).type if index >= 0 else None
    if kind is None or kind == types.UNKNOWN or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return None
    return None if pa.types.is_duration(kind) else kind


def _not_a_number(node: exp.Expr, name: str, schema: pa.Schema) -> Problem:
    kind = types.name_of(_kind(node, schema) or types.UNKNOWN)
    function = node.sql(dialect="spark")
    return Problem("MS029", f"`{function}`: the column is {kind}, and not a number", f"aggregate.{name}", "cast it to a number before")
