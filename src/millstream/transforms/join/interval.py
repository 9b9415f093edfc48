"""Joins two streams in time with Spark's own operator; also merges the columns of two sides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.plan.components import NodeContext, Problem
from millstream.plan.expressions import quote_column
from millstream.transforms.join.matching import match_problems

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from millstream.transforms.join.join import Join

_OVERHEAD = 48
"""Bytes that the state store needs per row besides its columns."""


def problems(join: Join, inputs: Mapping[str, pa.Schema | None]) -> list[Problem]:
    left, right = inputs.get(join.left), inputs.get(join.right)
    found = match_problems(join.matching, {"left": left, "right": right})
    if join.within is None and not join.unbounded:
        message = f"without a time bound every row of both sides is kept for ever{_estimate(left, right)}"
        help_ = "add `within: {before: …, after: …}`, or `unbounded: true` if the rows are few"
        found.append(Problem("MS039", message, "type", help_))
    return found


def output(join: Join, left: pa.Schema | None, right: pa.Schema | None) -> pa.Schema | None:
    if left is None or right is None:
        return None
    shared = join.matching.shared
    others = [pa.field(_name(field.name, left.names), field.type) for field in right if field.name not in shared]
    return pa.schema([*left, *others])


def apply(join: Join, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
    from pyspark.sql import functions as F

    left, right = frames[join.left].alias("left"), frames[join.right].alias("right")
    condition = join.matching.condition
    if join.within is not None:
        times = {name: quote_column(context.event_times[name]) for name in (join.left, join.right)}
        earliest = f"left.{times[join.left]} - INTERVAL '{join.within.before.milliseconds} milliseconds'"
        latest = f"left.{times[join.left]} + INTERVAL '{join.within.after.milliseconds} milliseconds'"
        condition = f"({condition}) AND right.{times[join.right]} >= {earliest} AND right.{times[join.right]} <= {latest}"
    joined = left.join(right, F.expr(condition), join.kind)
    return joined.select(*columns(join, frames[join.left].columns, frames[join.right].columns))


def columns(join: Join, left: list[str], right: list[str]) -> list[Column]:
    """The columns of both sides; a shared key once, from the side that has it."""
    from pyspark.sql import functions as F

    shared = join.matching.shared
    found = [_key(name, join.kind) if name in shared else F.col(f"left.{quote_column(name)}").alias(name) for name in left]
    return found + [F.col(f"right.{quote_column(name)}").alias(_name(name, left)) for name in right if name not in shared]


def _key(name: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    sides = [F.col(f"{side}.{quote_column(name)}") for side in ("left", "right")]
    return (sides[0] if kind in {"inner", "left"} else sides[1] if kind == "right" else F.coalesce(*sides)).alias(name)


def _name(name: str, left: list[str]) -> str:
    return f"right_{name}" if name in left else name


def _estimate(left: pa.Schema | None, right: pa.Schema | None) -> str:
    if left is None or right is None:
        return ""
    width = (_width(left) + _width(right)) / 2 + _OVERHEAD
    return f": about {width * 1_000_000 / (1 << 20):.0f} MB per million rows"


def _width(schema: pa.Schema) -> int:
    return sum(field.type.bit_width // 8 if pa.types.is_primitive(field.type) else 24 for field in schema)
