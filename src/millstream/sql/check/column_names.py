"""Finds wrong column names in a query: the column does not exist, or several inputs have it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from millstream.errors import nearest
from millstream.plan import types
from millstream.plan.changelog import OPS, SEQUENCE
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, place_of
from millstream.sql.check.resolution import Level

_BARE_CALLS = {"user", "current_user", "session_user", "current_time", "grouping__id"}
"""Functions without brackets, where no table has such a column. The parser knows the others."""


def find_unknown(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Columns that no source has, and those of USING that one side does not have."""
    yield from _unknown(query, level)
    yield from _unshared(query, level)


def _unknown(query: Query, level: Level) -> Iterator[SqlFinding]:
    for column in level.columns:
        root = column.parts[0].name.lower()
        if root in level.new or column.name == "*" or _is_no_column(column) or column.parent_select is not level.select:
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
    """Columns in USING that one side of the join does not have. The columns of a lateral view may belong to either side."""
    for join, left in level.joins if not level.select.args.get("laterals") else ():
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


def find_ambiguous(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Columns without a table that several sources have."""
    if level.merges_columns or any(join.kind in {"SEMI", "ANTI"} for join in level.select.args.get("joins") or ()):
        return
    for column in level.scoped_columns:
        holders = level.holders(column.name)
        if (
            _sees_all_sources(level, column)
            and len(column.parts) == 1
            and len(holders) > 1
            and column.name.lower() not in {*level.new, *OPS, SEQUENCE}
        ):
            help_ = f"write `{holders[0]}.{column.name}` or `{holders[1]}.{column.name}`"
            yield SqlFinding("MS161", f"`{column.name}` is a column of {_listed(holders)}", help_, place_of(query.text, column))


def _sees_all_sources(level: Level, column: exp.Column) -> bool:
    """Not so in a lateral view, nor in ON of a join that others follow."""
    place = column.find_ancestor(exp.Lateral, exp.Join, exp.Select)
    last = (level.select.args.get("joins") or [None])[-1]
    return not isinstance(place, exp.Lateral | exp.Join) or (place is last and not level.select.args.get("laterals"))


_UNITS = {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond"}


def _is_no_column(column: exp.Column) -> bool:
    """`HOUR` in `timestampdiff(HOUR, a, b)` is not a column, and `user` is a function."""
    unit = column.name.lower() in _UNITS and isinstance(column.parent, exp.Func)
    return len(column.parts) == 1 and (unit or column.name.lower() in _BARE_CALLS)
