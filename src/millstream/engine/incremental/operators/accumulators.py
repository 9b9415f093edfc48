"""What is stored of aggregates that can be added up: a few values per group, its accumulators.

`count`, `sum` and `avg` are sums of weighted values; `min` and `max` are kept the same way if the input never removes a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.engine.incremental.relations import Step
from millstream.engine.incremental.weights import WEIGHT
from millstream.sql.catalyst.bridge import Bridge, Expression

ROWS = "_rows"
"""The accumulator with the number of rows."""
HALF, LOW = 1 << 32, (1 << 32) - 1
_EXACT = ("ByteType", "ShortType", "IntegerType", "LongType")
_MOST_DIGITS = 28
"""A sum has ten digits more than its values, and at most 38."""


def can_add_up(bridge: Bridge, aggregate: Step, append_only: bool) -> bool:
    """Whether all functions of an aggregate can be kept as sums. Sums of floating-point numbers cannot if rows are removed: 1e20 + 1 - 1e20
    is 0.
    """
    parts = bridge.aggregate_parts(aggregate.plan)
    return parts is not None and all(_can_add_up(bridge, each, append_only) for each in parts[1])


def _can_add_up(bridge: Bridge, function: Expression, append_only: bool) -> bool:
    inner, name = function.aggregateFunction(), str(function.aggregateFunction().prettyName())
    if name in {"min", "max"}:
        return append_only
    if function.isDistinct() or name not in {"count", "sum", "avg"}:
        return False
    if name == "count":
        return True
    word = _word(bridge, inner)
    if word == "DecimalType":
        return int(bridge.children(inner)[0].dataType().precision()) <= _MOST_DIGITS
    return word in _EXACT or (append_only and word in {"DoubleType", "FloatType"})


def can_multiply(bridge: Bridge, functions: Iterable[Expression]) -> bool:
    """Whether the sums of functions can be multiplied by a weight and keep all digits."""
    inner = [each.aggregateFunction() for each in functions if str(each.aggregateFunction().prettyName()) in {"sum", "avg"}]
    digits = [int(bridge.children(each)[0].dataType().precision()) for each in inner if _word(bridge, each) == "DecimalType"]
    return all(count + 10 <= _MOST_DIGITS for count in digits)


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One stored value of a group."""

    name: str
    label: str
    """What it is, for `state show`."""
    of_change: str
    """SQL over the rows of a change."""
    merged: str
    """SQL over the stored row and that of the change."""
    weighted: str
    """SQL over rows of accumulators that have a weight."""
    is_sum: bool = True
    """False for a minimum or maximum. A sum of 0 or null changes no other sum that it is added to."""


@dataclass(frozen=True, slots=True)
class Accumulators:
    """The accumulators of some functions."""

    arguments: tuple[tuple[Expression, str], ...]
    """What the functions read, and the names under which the accumulators use it."""
    values: tuple[Accumulator, ...]

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.values]

    @property
    def labels(self) -> dict[str, str]:
        return {each.name: each.label for each in self.values}

    @property
    def nothing(self) -> str:
        """SQL: whether a row adds nothing to the sums of any other. A row with a minimum or maximum has at least one input row."""
        return " AND ".join(f"coalesce({each.name}, 0) = 0" for each in self.values if each.is_sum)


def accumulators_of(bridge: Bridge, functions: list[Expression]) -> Accumulators:
    arguments, found = list[tuple[Expression, str]](), list[Accumulator]()
    for index, function in enumerate(functions):
        inner, name = function.aggregateFunction(), str(function.aggregateFunction().prettyName())
        read, label = bridge.children(inner), str(inner.sql())
        names = [f"x{index}_{place}" for place in range(len(read))]
        conditions = [f"{each} IS NOT NULL" for each in names]
        if function.filter().isDefined():
            wanted = function.filter().get()  # an argument may be an error in rows that it leaves out
            read = [bridge.make("If", wanted, each, bridge.null_of(each.dataType())) for each in read]
            arguments.append((wanted, f"f{index}"))
            conditions.append(f"f{index}")
        arguments += zip(read, names, strict=True)
        counts = " AND ".join(conditions) or "true"
        if name in {"min", "max"}:
            least = f"{name}(m{index})"
            found.append(Accumulator(f"m{index}", label, f"{name}(if({counts}, {names[0]}, NULL))", least, least, is_sum=False))
            continue
        found.append(_count(f"n{index}", f"rows of {label}", f"if({counts}, {WEIGHT}, 0L)"))
        if name == "sum" and _word(bridge, inner) == "LongType":
            found += _halves(index, label, names[0], counts)
        elif name != "count":
            found.append(_sum(f"s{index}", label, *_kept_as(bridge, inner, names[0]), counts))
    return Accumulators(tuple(arguments), (*found, _count(ROWS, "rows", WEIGHT)))


def _count(name: str, label: str, value: str) -> Accumulator:
    return Accumulator(name, label, f"coalesce(sum({value}), 0L)", f"sum({name})", f"coalesce(sum({name} * {WEIGHT}), 0L)")


def _sum(name: str, label: str, kind: str, value: str, counts: str) -> Accumulator:
    partial, weighted = f"if({counts}, {_times(kind, value)}, NULL)", _times(kind, name)
    first, second, third = (f"cast(sum({each}) AS {kind})" for each in (partial, name, weighted))
    return Accumulator(name, label, first, second, third)


def _kept_as(bridge: Bridge, function: Expression, argument: str) -> tuple[str, str]:
    """The type in which a sum is kept, and the value that is added. The average of whole numbers is kept as their exact sum."""
    if str(function.prettyName()) == "avg" and _word(bridge, function) in _EXACT:
        return "decimal(38,0)", f"cast({argument} AS decimal(19,0))"
    return str(bridge.items(function.aggBufferAttributes())[0].dataType().sql()), argument


def _word(bridge: Bridge, function: Expression) -> str:
    """The type of a function's argument."""
    return str(bridge.children(function)[0].dataType().getClass().getSimpleName()).rstrip("$")


def _halves(index: int, label: str, value: str, counts: str) -> list[Accumulator]:
    """A sum of BIGINT is kept as the sums of the upper and the lower 32 bits. It may leave the type on the way, as when a row goes and
    another one comes; only a result that does not fit is an error.
    """
    halves = {f"h{index}": ("upper", f"shiftright({value}, 32)"), f"l{index}": ("lower", f"({value} & {LOW}L)")}
    found = []
    for name, (word, half) in halves.items():
        partial = f"sum(if({counts}, {half} * {WEIGHT}, NULL))"
        found.append(Accumulator(name, f"{label}, {word} 32 bits", partial, f"sum({name})", f"sum({name} * {WEIGHT})"))
    return found


def _times(kind: str, value: str) -> str:
    """A value times its weight. A decimal of at most 28 digits times one of 9 keeps all its digits; times a BIGINT it would not."""
    weight = f"cast({WEIGHT} AS decimal(9,0))" if kind.lower().startswith("decimal") else WEIGHT
    product = f"cast({value} * {weight} AS {kind})"
    return f"CASE {WEIGHT} WHEN 1 THEN cast({value} AS {kind}) WHEN -1 THEN -cast({value} AS {kind}) ELSE {product} END"
