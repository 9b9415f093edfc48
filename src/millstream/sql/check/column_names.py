"""Finds wrong column names in a query: the column does not exist, or several inputs have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp

from millstream.errors import nearest
from millstream.plan import types
from millstream.plan.changelog import OPS, SEQUENCE
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.grouping import find_aggregates_of_one_row, find_ungrouped, find_unsummable
from millstream.sql.check.query import Query, place_of
from millstream.sql.check.resolution import Level, levels


def find_mistakes(query: Query, tree: exp.Expr, tables: Mapping[str, pa.Schema]) -> tuple[SqlFinding, ...]:
    """`tree` is the query with its tables under the names of `tables`."""
    found = [finding for level in levels(tree, tables) for finding in _of(query, level)]
    return tuple(dict.fromkeys(found))


def _of(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Unknown columns first: what is said of the others may follow from them."""
    unknown = [*_unknown(query, level), *_unshared(query, level)]
    one_row = list(find_aggregates_of_one_row(query, level))
    yield from unknown or [*_ambiguous(query, level), *(one_row or find_ungrouped(query, level)), *find_unsummable(query, level)]


def _unknown(query: Query, level: Level) -> Iterator[SqlFinding]:
    for column in level.columns:
        root = column.parts[0].name.lower()
        if root in level.new or column.name == "*" or _is_unit(column) or column.parent_select is not level.select:
            continue
        names, kind = level.path(column)
        if len(names) > 1 and not level.holders(names[0]):
            help_ = nearest(names[0], level.sources)
            yield SqlFinding("MS024", f"unknown table `{names[0]}`", help_, place_of(query.text, column.parts[0]))
        elif not level.holders(names[0]):
            known = [*level.written, *(level.results if column.find_ancestor(exp.Having) else ())]
            yield SqlFinding("MS024", f"unknown column `{column.name}`", nearest(column.name, known), place_of(query.text, column))
        elif len(names) > 1 and pa.types.is_struct(kind):
            fields = [kind.field(index).name for index in range(kind.num_fields)]
            if names[1].lower() not in [name.lower() for name in fields]:
                message = f"unknown field `{names[1]}` of `{names[0]}`"
                yield SqlFinding("MS024", message, nearest(names[1], fields), place_of(query.text, column.parts[-len(names) + 1]))
        elif len(names) > 1 and _is_plain(kind):
            yield SqlFinding(
                "MS024", f"`{names[0]}` has no field `{names[1]}`: it is {types.name_of(kind)}", "", place_of(query.text, column)
            )


def _unshared(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Columns in USING that one side of the join does not have."""
    for join, left in level.joins:
        right = [join.alias_or_name]
        for column in join.args.get("using") or ():
            for side in (left, right):
                if not any(column.name.lower() in level.sources[alias] for alias in side):
                    message = f"unknown column `{column.name}`: USING needs it on both sides, and {_listed(side)} does not have it"
                    known = [name for alias in side for name in level.sources[alias]]
                    yield SqlFinding("MS024", message, nearest(column.name, known), place_of(query.text, column))
                    break


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type have no fields."""
    return any(is_one(kind) for is_one in (pa.types.is_primitive, pa.types.is_string, pa.types.is_binary, pa.types.is_decimal))


def _ambiguous(query: Query, level: Level) -> Iterator[SqlFinding]:
    if level.merges_columns or any(join.kind in {"SEMI", "ANTI"} for join in level.select.args.get("joins") or ()):
        return
    for column in level.scope.columns:
        holders = level.holders(column.name)
        if len(column.parts) == 1 and len(holders) > 1 and column.name.lower() not in {*level.new, *OPS, SEQUENCE}:
            help_ = f"write `{holders[0]}.{column.name}` or `{holders[1]}.{column.name}`"
            yield SqlFinding("MS161", f"`{column.name}` is a column of {_listed(holders)}", help_, place_of(query.text, column))


_UNITS = {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond"}


def _is_unit(column: exp.Column) -> bool:
    """`HOUR` in `timestampdiff(HOUR, a, b)` is not a column."""
    return len(column.parts) == 1 and column.name.lower() in _UNITS and isinstance(column.parent, exp.Func)
