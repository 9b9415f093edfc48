"""Aggregates as expressions: `sum_("amount")` prints as SQL, so Python and YAML use the same text.
stream.key_by("user").window(TumblingWindow.of("5m")).aggregate(total=sum_("amount"), n=count(), best=top_k("amount", 3))
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.plan.expressions import Expr, col, expr

Value = Expr | str
"""An expression, or a column's name."""


def count(value: Value | None = None, *, where: Value | None = None) -> Expr:
    """The number of rows; with a column, the number of values that are not null."""
    return _call("count", "*" if value is None else _text(value), where)


def count_distinct(*values: Value, where: Value | None = None) -> Expr:
    """The exact number of different values."""
    return _call("count", f"DISTINCT {', '.join(_text(value) for value in values)}", where)


def percentile(value: Value, fraction: float, *, where: Value | None = None) -> Expr:
    """The exact value below which this fraction of the values lies."""
    return _call("percentile", f"{_text(value)}, {fraction}", where)


def approx_percentile(value: Value, fraction: float, *, where: Value | None = None) -> Expr:
    """The same from a sketch of bounded size."""
    return _call("approx_percentile", f"{_text(value)}, {fraction}", where)


def top_k(value: Value, k: int, *, by: Value | None = None, where: Value | None = None) -> Expr:
    """The k largest values, largest first; or the values of the k rows with the largest `by`."""
    return _call("top_k", f"{_text(value)}, {k}" + (f", {_text(by)}" if by is not None else ""), where)


def _plain(name: str, meaning: str) -> Callable[..., Expr]:
    def aggregate(value: Value, *, where: Value | None = None) -> Expr:
        return _call(name, _text(value), where)

    aggregate.__name__, aggregate.__doc__ = name, meaning
    return aggregate


sum_ = _plain("sum", "The sum.")
avg = _plain("avg", "The mean.")
min_ = _plain("min", "The smallest value.")
max_ = _plain("max", "The largest value.")
first = _plain("first", "The value of the row that happened first.")
last = _plain("last", "The value of the row that happened last.")
approx_count_distinct = _plain("approx_count_distinct", "About how many different values, from a sketch of bounded size.")
median = _plain("median", "The value in the middle.")
stddev = _plain("stddev", "The sample standard deviation.")
variance = _plain("variance", "The sample variance.")
collect = _plain("collect_list", "All values as a list.")
collect_set = _plain("collect_set", "The different values as a list.")


def _call(name: str, arguments: str, where: Value | None) -> Expr:
    return expr(f"{name}({arguments})" + (f" FILTER (WHERE {where})" if where is not None else ""))


def _text(value: Value) -> str:
    return str(value) if isinstance(value, Expr) else str(col(value))
