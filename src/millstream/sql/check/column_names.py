"""Finds wrong column names in a query: the column does not exist, several inputs have it, or it has many values in a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from millstream.errors import nearest
from millstream.plan import types
from millstream.plan.changelog import OPS, SEQUENCE
from millstream.plan.components import TextPlace
from millstream.sql.check.builtins import AGGREGATES, BUILTINS
from millstream.sql.check.query import Query, is_aggregate, place_of
from millstream.sql.check.resolution import Level, levels
from millstream.sql.check.selects import aggregates, resolve_key


@dataclass(frozen=True, slots=True)
class Misnamed:
    """A column with a wrong name."""

    code: str
    message: str
    help: str
    place: TextPlace | None


def find_misnamed(query: Query, tree: exp.Expr, tables: Mapping[str, pa.Schema]) -> tuple[Misnamed, ...]:
    """`tree` is the query with its tables under the names of `tables`."""
    found = [finding for level in levels(tree, tables) for finding in _of(query, level)]
    return tuple(dict.fromkeys(found))


def _of(query: Query, level: Level) -> Iterator[Misnamed]:
    unknown = list(_unknown(query, level))
    yield from unknown or [*_ambiguous(query, level), *_without_group(query, level)]


def _unknown(query: Query, level: Level) -> Iterator[Misnamed]:
    for column in level.scope.columns:
        root = column.parts[0].name.lower()
        if root in level.new or column.name == "*" or _is_unit(column) or column.parent_select is not level.select:
            continue
        names, kind = level.path(column)
        if not level.holders(names[0]):
            yield Misnamed("MS024", f"unknown column `{column.name}`", nearest(column.name, level.written), place_of(query.text, column))
        elif len(names) > 1 and pa.types.is_struct(kind):
            fields = [kind.field(index).name for index in range(kind.num_fields)]
            if names[1].lower() not in [name.lower() for name in fields]:
                message = f"unknown field `{names[1]}` of `{names[0]}`"
                yield Misnamed("MS024", message, nearest(names[1], fields), place_of(query.text, column.parts[-len(names) + 1]))
        elif len(names) > 1 and _is_plain(kind):
            yield Misnamed(
                "MS024", f"`{names[0]}` has no field `{names[1]}`: it is {types.name_of(kind)}", "", place_of(query.text, column)
            )


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type have no fields."""
    return any(is_one(kind) for is_one in (pa.types.is_primitive, pa.types.is_string, pa.types.is_binary, pa.types.is_decimal))


def _ambiguous(query: Query, level: Level) -> Iterator[Misnamed]:
    joins = level.select.args.get("joins") or []
    if any(join.args.get("using") or join.args.get("method") or join.kind in {"SEMI", "ANTI"} for join in joins):
        return
    for column in level.scope.columns:
        holders = level.holders(column.name)
        if len(column.parts) == 1 and len(holders) > 1 and column.name.lower() not in {*level.new, *OPS, SEQUENCE}:
            sources = " and ".join(f"`{holder}`" for holder in holders)
            help_ = f"write `{holders[0]}.{column.name}` or `{holders[1]}.{column.name}`"
            yield Misnamed("MS161", f"`{column.name}` is a column of {sources}", help_, place_of(query.text, column))


def _without_group(query: Query, level: Level) -> Iterator[Misnamed]:
    select, group = level.select, level.select.args.get("group")
    if (where := select.args.get("where")) and (calls := [node for node in where.walk() if _adds_up(node, select)]):
        message = f"WHERE sees one row, but `{calls[0].sql(dialect='spark')}` needs many"
        yield Misnamed(
            "MS160", message, "aggregate by `window(…)` in a separate query, and put the condition after it", place_of(query.text, where)
        )
        return
    if not aggregates(select) or (group is not None and (not group.expressions or any(group.args.get(each) for each in _OTHER_GROUPS))):
        return
    keys = [resolve_key(select, key).unalias() for key in group.expressions] if group is not None else []
    if any(isinstance(key, exp.Literal | exp.Tuple) for key in keys):
        return
    grouped = {part.name.lower() for key in keys for column in [key, *key.find_all(exp.Column)] for part in getattr(column, "parts", ())}
    for column in (column for item in select.selects for column in _loose(query.text, item.unalias())):
        names = {part.name.lower() for part in column.parts}
        if level.holders(column.name) and not names & (grouped | level.new):
            help_ = f"add it to GROUP BY, or take one of the group's values: `first({column.name})`, `max({column.name})`"
            message = f"`{column.name}` is neither grouped by nor aggregated"
            yield Misnamed("MS160", message, help_, place_of(query.text, column))


def _adds_up(node: exp.Expr, select: exp.Select) -> bool:
    return is_aggregate(node) and node.parent_select is select and not node.find_ancestor(exp.Window)


_OTHER_GROUPS = ("grouping_sets", "cube", "rollup", "totals", "all")
_OTHER_ROWS = (exp.Query, exp.Window, exp.Lambda, exp.Filter, exp.WithinGroup)
_UNITS = {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond"}


def _loose(text: str, node: exp.Expr) -> Iterator[exp.Column]:
    """Columns outside of aggregates. Arguments of functions that are not Spark's are skipped: such a function may be an aggregate."""
    called = text[node.meta["start"] : node.meta["end"] + 1].lower() if isinstance(node, exp.Func) and "start" in node.meta else ""
    foreign = bool(called) and called not in BUILTINS
    if is_aggregate(node) or foreign or called in AGGREGATES or isinstance(node, _OTHER_ROWS):
        return
    if isinstance(node, exp.Column):
        yield node
        return
    for child in node.iter_expressions():
        yield from _loose(text, child)


def _is_unit(column: exp.Column) -> bool:
    """`HOUR` in `timestampdiff(HOUR, a, b)` is not a column."""
    return len(column.parts) == 1 and column.name.lower() in _UNITS and isinstance(column.parent, exp.Func)
