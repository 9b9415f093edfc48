"""The condition of a join: columns of the same name, or an expression over `left.…` and `right.…`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from millstream.errors import nearest
from millstream.plan import types
from millstream.plan.components import Problem, TextPlace
from millstream.plan.expressions import expr
from millstream.sql.check.query import place_of

SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Matching:
    """The condition, and the pairs of columns that it compares."""

    condition: str
    pairs: tuple[tuple[str, str], ...]
    stray: tuple[tuple[str, TextPlace | None], ...] = ()
    """Columns without a side, and their places in the condition."""
    read: tuple[tuple[str, str, TextPlace | None], ...] = ()
    """(side, column, place): all columns in the condition."""

    @property
    def shared(self) -> tuple[str, ...]:
        """Keys with the same name on both sides, which are returned once."""
        return tuple(left for left, right in self.pairs if left == right)


def parse_condition(on: tuple[str, ...] | str) -> Matching:
    names = on if isinstance(on, tuple) else (on,) if on.isidentifier() else ()
    if names:
        condition = " AND ".join(f"left.`{name}` = right.`{name}`" for name in names)
        return Matching(condition, tuple((name, name) for name in names), (), tuple((side, name, None) for side in SIDES for name in names))
    tree = expr(str(on)).tree
    columns = list(tree.find_all(exp.Column))
    places = [(column, place_of(str(on), column.this)) for column in columns]
    stray = tuple((column.sql(dialect="spark"), place) for column, place in places if column.table.lower() not in SIDES)
    conditions = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
    pairs = [pair for pair in map(_pair, conditions) if pair]
    return Matching(str(on), tuple(pairs), stray, tuple((column.table.lower(), column.name, place) for column, place in places))


def match_problems(found: Matching, schemas: Mapping[str, pa.Schema | None]) -> list[Problem]:
    """Columns without a side, unknown columns, and pairs of different types; sides are `left` and `right`."""
    problems = [
        _at(Problem("MS024", f"`{name}` has no side", "on", f"write `left.{name}` or `right.{name}`"), at) for name, at in found.stray
    ]
    if not found.pairs:
        problems.append(Problem("MS027", "a join needs an equality between both sides", "on", "write `left.id = right.id`"))
    for side, column, place in found.read:
        schema = schemas.get(side)
        if schema is not None and column not in schema.names:
            problem = Problem("MS024", f"unknown column `{column}` on the {side} side", "on", nearest(column, schema.names))
            problems.append(_at(problem, place))
    for left, right in found.pairs:
        problems += _types_differ(left, right, schemas.get("left"), schemas.get("right"))
    return problems


def _at(problem: Problem, place: TextPlace | None) -> Problem:
    return replace(problem, line=place.line, column=place.column, width=place.end - place.start) if place else problem


def _pair(condition: exp.Expr) -> tuple[str, str] | None:
    if not isinstance(condition, exp.EQ) or not isinstance(condition.this, exp.Column) or not isinstance(condition.expression, exp.Column):
        return None
    sides = {column.table.lower(): column.name for column in (condition.this, condition.expression)}
    return (sides["left"], sides["right"]) if set(sides) == set(SIDES) else None


def _types_differ(left: str, right: str, one: pa.Schema | None, other: pa.Schema | None) -> list[Problem]:
    if one is None or other is None or left not in one.names or right not in other.names:
        return []
    kinds = (one.field(left).type, other.field(right).type)
    if kinds[0] == kinds[1] or types.UNKNOWN in kinds or all(_number(kind) for kind in kinds):
        return []
    message = f"`left.{left}` is {types.name_of(kinds[0])} and `right.{right}` is {types.name_of(kinds[1])}: they are never equal"
    return [Problem("MS035", message, "on", "cast one of them in a transform before")]


def _number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))
