"""Finds columns that have many values in a group, aggregates where there is one row, and values that cannot be added up."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from sqlglot import exp

from millstream.plan import types
from millstream.sql.check.builtins import AGGREGATES, BUILTINS
from millstream.sql.check.finding import SqlFinding
from millstream.sql.check.query import Query, is_aggregate, place_of, place_of_column, word_of
from millstream.sql.check.resolution import Level, Origin
from millstream.sql.check.selects import aggregates, resolve_key
from millstream.sql.own_functions import OWN_FUNCTIONS

_OTHER_GROUPS = ("grouping_sets", "cube", "rollup", "totals", "all")
_OTHER_ROWS = (exp.Query, exp.Window, exp.Lambda, exp.Filter, exp.WithinGroup)
_NO_NUMBERS = {
    pa.types.is_boolean: "cast it: `{call}(int({column}))`",
    pa.types.is_date: "convert it to a number first, such as `unix_date({column})`",
    pa.types.is_nested: "take a number out of it first",
    pa.types.is_binary: "convert it to a number first",
}
"""Types that Spark cannot add up, with what to do. It can add up timestamps and text, which it casts."""


def find_aggregates_of_one_row(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Aggregates in WHERE, which is computed before rows are grouped."""
    where = level.select.args.get("where")
    for call in where.walk() if where is not None else ():
        if is_aggregate(call) and call.parent_select is level.select and not call.find_ancestor(exp.Window):
            help_ = f"a condition on groups comes after GROUP BY: `HAVING {_written(_condition(call))}`"
            message = f"WHERE sees one row, but `{_written(call)}` needs many"
            yield SqlFinding("MS160", message, help_, place_of(query.text, call))
            return


def find_unsummable(query: Query, level: Level) -> Iterator[SqlFinding]:
    """`sum` and `avg` of a column whose values are no numbers."""
    for call in level.select.find_all(exp.Sum, exp.Avg):
        column = call.this.expressions[0] if isinstance(call.this, exp.Distinct) else call.this
        if not isinstance(column, exp.Column) or call.parent_select is not level.select:
            continue
        names, kind = level.path(column)
        advice = next((text for is_one, text in _NO_NUMBERS.items() if is_one(kind)), "") if len(names) == 1 else ""
        if advice:
            message = f"`{call.key}` needs numbers, but `{_name_of(column)}` is {types.name_of(kind)}"
            help_ = advice.format(call=call.key, column=_name_of(column))
            yield SqlFinding("MS029", message, help_, place_of_column(query.text, column))


def find_ungrouped(query: Query, level: Level) -> Iterator[SqlFinding]:
    """Columns of SELECT and HAVING outside of aggregates by which rows are not grouped."""
    select, group = level.select, level.select.args.get("group")
    if not aggregates(select) or (group is not None and (not group.expressions or any(group.args.get(each) for each in _OTHER_GROUPS))):
        return
    keys = [_key(level, key).unalias() for key in group.expressions] if group is not None else []
    if any(isinstance(key, exp.Literal | exp.Tuple) or _is_named_by_text(key) for key in keys):
        return
    read = [column for key in keys for column in key.find_all(exp.Column)]
    for column in _loose_columns(query.text, level):
        if level.holders(level.path(column)[0][0]) and not _is_grouped(column, read, level):
            name = _name_of(column)
            help_ = f"add it to GROUP BY, or take one of the group's values: `first({name})`, `max({name})`"
            yield SqlFinding("MS160", f"`{name}` is neither grouped by nor aggregated", help_, place_of_column(query.text, column))


def _is_named_by_text(key: exp.Expr) -> bool:
    """`IDENTIFIER('g')` is the column `g`."""
    return any(call.name.lower() == "identifier" for call in key.find_all(exp.Anonymous))


def _key(level: Level, key: exp.Expr) -> exp.Expr:
    """The meaning of a key of GROUP BY. A column of the input comes before one of the result."""
    held = isinstance(key, exp.Column) and len(key.parts) == 1 and level.holders(key.name)
    return key if held else resolve_key(level.select, key)


def _is_grouped(column: exp.Column, keys: list[exp.Column], level: Level) -> bool:
    """Whether a column may be one of those in GROUP BY: by its source if that is certain, else by its name."""
    origins: list[Origin | None] = [level.origin(key) for key in keys]
    own = level.origin(column)
    if own is not None and None not in origins and not level.merges_columns:
        return own in origins
    grouped = {part.name.lower() for key in keys for part in key.parts}
    return not {part.name.lower() for part in column.parts}.isdisjoint(grouped | level.new)


def _loose_columns(text: str, level: Level) -> Iterator[exp.Column]:
    for item in level.select.selects:
        yield from _loose(text, item.unalias())
    having = level.select.args.get("having")
    for column in _loose(text, having.this) if having is not None else ():
        if not level.may_be_result(column):
            yield column


def _loose(text: str, node: exp.Expr) -> Iterator[exp.Column]:
    """Columns outside of aggregates. Arguments of functions that are not Spark's are skipped: such a function may be an aggregate."""
    called = word_of(text, node) if isinstance(node, exp.Func) else ""
    foreign = bool(called) and called not in BUILTINS and called not in OWN_FUNCTIONS
    if is_aggregate(node) or foreign or called in AGGREGATES or isinstance(node, _OTHER_ROWS):
        return
    if isinstance(node, exp.Column):
        yield node
        return
    for child in node.iter_expressions():
        yield from _loose(text, child)


def _condition(call: exp.Expr) -> exp.Expr:
    """The condition of WHERE in which a call stands, among those that AND combines."""
    found = call
    while found.parent is not None and not isinstance(found.parent, exp.Where | exp.And):
        found = found.parent
    return found


def _written(node: exp.Expr) -> str:
    return str(node.sql(dialect="spark", normalize_functions="lower"))


def _name_of(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)
