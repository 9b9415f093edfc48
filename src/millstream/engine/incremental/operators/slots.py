"""What is stored of aggregates that can be added up: a few values per group, its slots.

`count`, `sum` and `avg` are sums of weighted values; `min` and `max` are kept the same way if the input never removes a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from millstream.engine.incremental.relations import Step
from millstream.engine.incremental.weights import WEIGHT
from millstream.sql.catalyst.bridge import Bridge, Expression

ROWS = "_rows"
"""The slot with the number of rows."""
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
class Slot:
    """One stored value of a group."""

    name: str
    partial: str
    """SQL over the rows of a change."""
    merged: str
    """SQL over the stored row and the partial one."""
    weighted: str
    """SQL over rows of slots that have a weight."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of some functions."""

    arguments: tuple[tuple[Expression, str], ...]
    """What the functions read, and the names under which the slots use it."""
    slots: tuple[Slot, ...]
    functions: tuple[str, ...]
    """The functions, as SQL."""

    @property
    def names(self) -> list[str]:
        return [slot.name for slot in self.slots]

    @property
    def nothing(self) -> str:
        """SQL: whether a row of slots adds nothing to any other. Rows with a minimum never cancel each other."""
        return " AND ".join(f"coalesce({slot.name}, 0) = 0" for slot in self.slots if not slot.name.startswith("m"))


def slots_of(bridge: Bridge, functions: list[Expression]) -> Slots:
    arguments, slots = list[tuple[Expression, str]](), list[Slot]()
    for index, function in enumerate(functions):
        inner, name = function.aggregateFunction(), str(function.aggregateFunction().prettyName())
        read = bridge.children(inner)
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
            slots.append(Slot(f"m{index}", f"{name}(if({counts}, {names[0]}, NULL))", *[f"{name}(m{index})"] * 2))
            continue
        slots.append(_count(f"n{index}", f"if({counts}, {WEIGHT}, 0L)"))
        if name == "sum" and _word(bridge, inner) == "LongType":
            slots += _halves(index, names[0], counts)
        elif name != "count":
            slots.append(_sum(f"s{index}", *_kept_as(bridge, inner, names[0]), counts))
    texts = tuple(str(each.aggregateFunction().sql()) for each in functions)
    return Slots(tuple(arguments), (*slots, _count(ROWS, WEIGHT)), texts)


def _count(name: str, value: str) -> Slot:
    return Slot(name, f"coalesce(sum({value}), 0L)", f"sum({name})", f"coalesce(sum({name} * {WEIGHT}), 0L)")


def _sum(name: str, kind: str, value: str, counts: str) -> Slot:
    partial, weighted = f"if({counts}, {_times(kind, value)}, NULL)", _times(kind, name)
    return Slot(name, *[f"cast(sum({each}) AS {kind})" for each in (partial, name, weighted)])


def _kept_as(bridge: Bridge, function: Expression, argument: str) -> tuple[str, str]:
    """The type in which a sum is kept, and the value that is added. The average of whole numbers is kept as their exact sum."""
    if str(function.prettyName()) == "avg" and _word(bridge, function) in _EXACT:
        return "decimal(38,0)", f"cast({argument} AS decimal(19,0))"
    return str(bridge.items(function.aggBufferAttributes())[0].dataType().sql()), argument


def _word(bridge: Bridge, function: Expression) -> str:
    """The type of a function's argument."""
    return str(bridge.children(function)[0].dataType().getClass().getSimpleName()).rstrip("$")


def _halves(index: int, value: str, counts: str) -> list[Slot]:
    """A sum of BIGINT is kept as the sums of the upper and the lower 32 bits. It may leave the type on the way, as when a row goes and
    another one comes; only a result that does not fit is an error.
    """
    halves = {f"h{index}": f"shiftright({value}, 32)", f"l{index}": f"({value} & {LOW}L)"}
    return [
        Slot(name, f"sum(if({counts}, {half} * {WEIGHT}, NULL))", f"sum({name})", f"sum({name} * {WEIGHT})")
        for name, half in halves.items()
    ]


def _times(kind: str, value: str) -> str:
    """A value times its weight. A decimal of at most 28 digits times one of 9 keeps all its digits; times a BIGINT it would not."""
    weight = f"cast({WEIGHT} AS decimal(9,0))" if kind.lower().startswith("decimal") else WEIGHT
    product = f"cast({value} * {weight} AS {kind})"
    return f"CASE {WEIGHT} WHEN 1 THEN cast({value} AS {kind}) WHEN -1 THEN -cast({value} AS {kind}) ELSE {product} END"
