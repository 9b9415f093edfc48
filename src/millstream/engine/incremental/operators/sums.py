"""Aggregates that can be added up: a new row changes a group's sums without its other rows.

`count`, `sum` and `avg` are sums of weighted values; `min` and `max` are kept the same way if the input never removes a row. A group is one
stored row of sums and the number of its rows. What a step returned for a group is computed again from exactly the stored sums, so that the
row which is removed later equals the row that was added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta, Step
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, consolidated, partitioned
from millstream.sql.catalyst.bridge import Bridge, Expression

_ROWS = "_rows"
"""How many rows a group has."""
_EXACT = ("ByteType", "ShortType", "IntegerType", "LongType")
_MOST_DIGITS = 28
"""A sum has ten digits more than its values, and at most 38."""
_HALF, _LOW = 1 << 32, (1 << 32) - 1
_ID = re.compile(r"#\d+L?")
"""Spark's number of a column, other in every start; names that Spark makes up for expressions hold it."""


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


@dataclass(frozen=True, slots=True)
class _Slot:
    """One stored value of a group."""

    name: str
    partial: str
    """SQL over the rows of a change."""
    merged: str
    """SQL over the stored row and the partial one."""


@dataclass
class Sums(Operator):
    """One row of sums per group."""

    kind: ClassVar[str] = "sums"

    keys: list[Expression] = field(init=False)
    functions: list[Expression] = field(init=False)
    results: list[Expression] = field(init=False)
    _arguments: list[tuple[Expression, str]] = field(init=False, default_factory=list)
    _slots: list[_Slot] = field(init=False, default_factory=list)

    def prepare(self, bridge: Bridge) -> Sums:
        parts = bridge.aggregate_parts(self.step.plan)
        assert parts is not None
        self.keys, self.functions, self.results = parts
        for index, function in enumerate(self.functions):
            self._add_slots(bridge, index, function)
        self._slots.append(_Slot(_ROWS, f"coalesce(sum({WEIGHT}), 0L)", f"sum({_ROWS})"))
        return self

    @property
    def key(self) -> str:
        return ", ".join(_ID.sub("", str(each.name())) for each in self.keys)

    @property
    def stores(self) -> tuple[str, ...]:
        return ("one row per group",)

    def _add_slots(self, bridge: Bridge, index: int, function: Expression) -> None:
        inner, name = function.aggregateFunction(), str(function.aggregateFunction().prettyName())
        arguments = bridge.children(inner)
        names = [f"x{index}_{place}" for place in range(len(arguments))]
        self._arguments += list(zip(arguments, names, strict=True))
        conditions = [f"{each} IS NOT NULL" for each in names]
        if function.filter().isDefined():
            self._arguments.append((function.filter().get(), f"f{index}"))
            conditions.append(f"f{index}")
        counts = " AND ".join(conditions) or "true"
        if name in {"min", "max"}:
            self._slots.append(_Slot(f"m{index}", f"{name}(if({counts}, {names[0]}, NULL))", f"{name}(m{index})"))
            return
        self._slots.append(_Slot(f"n{index}", f"coalesce(sum(if({counts}, {WEIGHT}, 0L)), 0L)", f"sum(n{index})"))
        if name == "sum" and _word(bridge, inner) == "LongType":
            self._slots += _halves(index, names[0], counts)
        elif name != "count":
            kind, value = self._kept_as(bridge, inner, names[0])
            signed = (
                f"CASE {WEIGHT} WHEN 1 THEN cast({value} AS {kind}) WHEN -1 THEN -cast({value} AS {kind}) ELSE {_times(kind, value)} END"
            )
            self._slots.append(_Slot(f"s{index}", f"cast(sum(if({counts}, {signed}, NULL)) AS {kind})", f"cast(sum(s{index}) AS {kind})"))

    def _kept_as(self, bridge: Bridge, function: Expression, argument: str) -> tuple[str, str]:
        """The type in which a sum is kept, and the value that is added. The average of whole numbers is kept as their exact sum."""
        if str(function.prettyName()) == "avg" and _word(bridge, function) in _EXACT:
            return "decimal(38,0)", f"cast({argument} AS decimal(19,0))"
        return str(bridge.items(function.aggBufferAttributes())[0].dataType().sql()), argument

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,) = deltas
        names, key_names = [slot.name for slot in self._slots], [f"k{index}" for index in range(len(self.keys))]
        groups = [HASH, *key_names]
        replaces = bool(self.keys) and tracing.is_compact(self.number, "sums")
        partial = tracing.cut(self._partial(tracing, delta, key_names), held=not replaces)
        like = partial.selectExpr(*groups, f"1L AS {WEIGHT}", *names)
        store = tracing.store(self.number, "sums", like)
        before = store.frame  # a store that is replaced has each group once
        if not replaces:
            before = consolidated(store.at(partial.select(HASH)) if self.keys else before)
        both = partial.selectExpr(*groups, *names, "true AS _new").union(before.selectExpr(*groups, *names, "false AS _new"))
        old = [F.expr(f"max(if(_new, NULL, {name})) AS old_{name}") for name in names]
        merged = both.groupBy(*groups).agg(*[F.expr(f"{slot.merged} AS {slot.name}") for slot in self._slots], *old)
        if replaces:
            merged = tracing.cut(merged)
            store.replace(tracing.cut(merged.where(f"{_ROWS} <> 0").selectExpr(*groups, f"1L AS {WEIGHT}", *names), held=False))
        changed = " OR ".join(f"NOT (old_{name} <=> {name})" for name in names)
        removed, added = [f"if(old_{_ROWS} IS NULL, 0L, -1L)", *(f"old_{name}" for name in names)], ["1L", *names]
        rows = merged.where(changed).selectExpr(*groups, f"stack(2, {', '.join([*removed, *added])}) AS ({', '.join([WEIGHT, *names])})")
        kept = f"{WEIGHT} <> 0 AND {_ROWS} <> 0" if self.keys else f"{WEIGHT} <> 0"
        change = tracing.cut(rows.where(kept), held=not replaces)
        store.add(change)
        return self._results(tracing.bridge, change)

    def _partial(self, tracing: Tracing, delta: Delta, key_names: list[str]) -> DataFrame:
        """The sums of the change alone, one row per touched group."""
        bridge = tracing.bridge
        items = [bridge.alias(bridge.unnamed(key), name) for key, name in zip(self.keys, key_names, strict=True)]
        items += [bridge.alias(argument, name) for argument, name in self._arguments]
        frame = bridge.frame(bridge.project([*items, bridge.alias(delta.weight, WEIGHT)], delta.plan))
        sums = [F.expr(f"{slot.partial} AS {slot.name}") for slot in self._slots]
        if not self.keys:
            return frame.agg(*sums).selectExpr(f"0L AS {HASH}", *[slot.name for slot in self._slots])
        hashed = bridge.frame(
            bridge.project(
                [*bridge.items(frame._jdf.logicalPlan().output()), bridge.alias(bridge.hash_of(_named(bridge, frame, key_names)), HASH)],
                frame._jdf.logicalPlan(),
            )
        )
        if not tracing.form.large:  # few rows: they are not worth two aggregations
            hashed = partitioned(hashed, tracing.partitions)
        return hashed.groupBy(HASH, *key_names).agg(*sums)

    def _results(self, bridge: Bridge, change: DataFrame) -> Delta:
        """From sums to Spark's own results of the functions, and from these to the step's columns."""
        rows = change.where(f"{_ROWS} > 0") if self.keys else change
        for index, function in enumerate(self.functions):
            if f"h{index}" in rows.columns:
                whole = f"(h{index} + shiftright(l{index}, 32)) * {_HALF}L + (l{index} & {_LOW}L)"
                rows = rows.withColumn(f"s{index}", F.expr(whole))
            if str(function.aggregateFunction().prettyName()) == "avg":
                kind = bridge.items(function.aggregateFunction().aggBufferAttributes())[0].dataType().sql()
                rows = rows.withColumn(f"s{index}", F.expr(f"cast(s{index} AS {kind})"))
        plan = rows._jdf.logicalPlan()
        own = {str(each.name()): each for each in bridge.items(plan.output())}
        keys = [key.toAttribute() for key in self.keys]
        first = [bridge.alias(own[f"k{index}"], key.name(), key.exprId()) for index, key in enumerate(keys)]
        second = list(keys)
        weight = bridge.alias(own[WEIGHT], WEIGHT)
        for index, function in enumerate(self.functions):
            values, result = self._result(bridge, index, function, own)
            first += values
            second.append(result)
        kept = weight.toAttribute()
        computed = bridge.project([*second, kept], bridge.project([*first, weight], plan))
        return Delta(bridge.project([*self.results, kept], computed), kept)

    def _result(self, bridge: Bridge, index: int, function: Expression, own: dict[str, Expression]) -> tuple[list[Expression], Expression]:
        """The values that a function's result is made of, and the result."""
        inner, name, result = function.aggregateFunction(), str(function.aggregateFunction().prettyName()), function.resultAttribute()
        if name == "count":
            return [bridge.alias(own[f"n{index}"], result.name(), result.exprId())], result
        if name in {"min", "max"}:
            return [bridge.alias(own[f"m{index}"], result.name(), result.exprId())], result
        empty = bridge.make("EqualTo", own[f"n{index}"], bridge.expression("0L"))
        if name == "sum":
            value = bridge.make("If", empty, bridge.null_of(inner.dataType()), own[f"s{index}"])
            return [bridge.alias(value, result.name(), result.exprId())], result
        total, count = bridge.items(inner.aggBufferAttributes())
        nothing = bridge.items(inner.initialValues())[0]
        value = bridge.make("If", empty, nothing, own[f"s{index}"])
        values = [bridge.alias(value, total.name(), total.exprId()), bridge.alias(own[f"n{index}"], count.name(), count.exprId())]
        return values, bridge.alias(inner.evaluateExpression(), result.name(), result.exprId())


def _word(bridge: Bridge, function: Expression) -> str:
    """The type of a function's argument."""
    return str(bridge.children(function)[0].dataType().getClass().getSimpleName()).rstrip("$")


def _halves(index: int, value: str, counts: str) -> list[_Slot]:
    """A sum of BIGINT is kept as the sums of the upper and the lower 32 bits. It may leave the type on the way, as when a row goes and
    another one comes; only a result that does not fit is an error.
    """
    halves = {f"h{index}": f"shiftright({value}, 32)", f"l{index}": f"({value} & {_LOW}L)"}
    return [_Slot(name, f"sum(if({counts}, {half} * {WEIGHT}, NULL))", f"sum({name})") for name, half in halves.items()]


def _times(kind: str, value: str) -> str:
    """A value times its weight. A decimal of at most 28 digits times one of 9 keeps all its digits; times a BIGINT it would not."""
    weight = f"cast({WEIGHT} AS decimal(9,0))" if kind.lower().startswith("decimal") else WEIGHT
    return f"cast({value} * {weight} AS {kind})"


def _named(bridge: Bridge, frame: DataFrame, names: list[str]) -> list[Expression]:
    own = {str(each.name()): each for each in bridge.items(frame._jdf.logicalPlan().output())}
    return [own[name] for name in names]
