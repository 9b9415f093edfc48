"""What a SELECT of a parsed query groups by: its windows, its keys, and what they are called in the result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from millstream.sql.check.query import is_aggregate

_UNITS = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000}
_UNITS["week"] = 7 * _UNITS["day"]
_AMOUNT = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})s?")
WINDOWS = ("window", "session_window")


def own(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT itself, without those of nested ones."""
    yield from _own(select, select)


def _own(node: exp.Expr, top: exp.Select) -> Iterator[exp.Expr]:
    for child in node.iter_expressions():
        if isinstance(child, exp.Query | exp.With):
            continue
        yield child
        yield from _own(child, top)


def window_calls(select: exp.Select) -> list[exp.Anonymous]:
    """Calls of `window(…)` and `session_window(…)` in GROUP BY."""
    group = select.args.get("group")
    keys = [resolve_key(select, key) for key in group.expressions] if group else []
    calls = [call for key in keys for call in [key.unalias(), *key.find_all(exp.Anonymous)] if is_window(call)]
    return list({id(call): call for call in calls if isinstance(call, exp.Anonymous)}.values())


def window_identity(call: exp.Anonymous) -> str:
    """The kind of a window: equal for windows of the same length, step and origin, on any column."""
    lengths = [_length(argument) for argument in call.expressions[1:]]
    left_out = [*lengths[:1], "0"][len(lengths) - 1 :] if call.name.lower() == "window" else []
    return " ".join([call.name.lower().removesuffix("_window"), *lengths, *left_out])


def _length(argument: exp.Expr) -> str:
    """A duration in microseconds if it is a literal, else its text."""
    text = argument.name if argument.is_string else argument.sql(dialect="spark").removeprefix("INTERVAL").replace("'", "").strip()
    parts = _AMOUNT.findall(text.lower())
    if not parts or _AMOUNT.sub("", text.lower()).strip():
        return text.lower()
    return str(sum(round(float(amount) * _UNITS[unit]) for amount, unit in parts))


def is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in WINDOWS


def resolve_key(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """The meaning of a GROUP BY key: the n-th column of the result, a column of the input, or else the result's column of that name. An
    input certainly has a column of that name when the alias is computed from one; in other cases Spark's plan decides.
    """
    if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.this) <= len(select.selects):
        return select.selects[int(key.this) - 1]
    if isinstance(key, exp.Column) and len(key.parts) == 1:
        aliases = [item for item in select.selects if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower()]
        return next((item for item in aliases if not _reads(item, key.name) and not any(map(is_aggregate, item.walk()))), key)
    return key


def _reads(item: exp.Expr, name: str) -> bool:
    """Whether an aliased expression is computed from a column of the same name."""
    return any(column.parts[0].name.lower() == name.lower() for column in item.find_all(exp.Column))


def group_columns(select: exp.Select) -> tuple[str, ...]:
    """The names of the GROUP BY keys in the result; empty when one of them is not in it."""
    names = [next((item.alias_or_name for item in select.selects if _same(item.unalias(), key)), "") for key in group_keys(select)]
    return tuple(names) if all(names) else ()


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """The GROUP BY keys; with GROUP BY ALL, all selected columns that are not aggregates."""
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        return [item.unalias() for item in select.selects if not any(map(is_aggregate, item.walk()))]
    return [resolve_key(select, key).unalias() for key in group.expressions] if group is not None else []


def _same(item: exp.Expr, key: exp.Expr) -> bool:
    """Whether a column of the result is a key, with or without its table."""
    if isinstance(item, exp.Column) and isinstance(key, exp.Column) and (not item.table or not key.table):
        return item.name.lower() == key.name.lower()
    return item == key


def aggregates(select: exp.Select) -> bool:
    """Whether the SELECT itself groups or aggregates."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(is_aggregate(node) and not _in_window_function(node, select) for node in own(select))


def _in_window_function(node: exp.Expr, select: exp.Select) -> bool:
    """Whether an aggregate belongs to a window function."""
    parent = node.parent
    while parent is not None and parent is not select:
        if isinstance(parent, exp.Window):
            return True
        parent = parent.parent
    return False
