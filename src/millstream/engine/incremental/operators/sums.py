"""Aggregates that can be added up: a new row changes a group's sums without its other rows.

`count`, `sum` and `avg` are sums of weighted values; `min` and `max` are kept the same way if the input never removes a row. A group is one
stored row of sums and the number of its rows. What a step returned for a group is computed again from exactly the stored sums, so that the
row which is removed later equals the row that was added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millstream.engine.incremental.operators.accumulators import HALF, LOW, ROWS, Accumulators, accumulators_of
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, consolidated, partitioned
from millstream.sql.catalyst.bridge import Bridge, Expression

_ID = re.compile(r"#\d+L?")
"""Spark's number of a column, other in every start; names that Spark makes up for expressions hold it."""


@dataclass
class Sums(Operator):
    """One row of sums per group."""

    kind: ClassVar[str] = "sums"

    keys: list[Expression] = field(init=False)
    functions: list[Expression] = field(init=False)
    results: list[Expression] = field(init=False)
    accumulators: Accumulators = field(init=False)
    summed: Mapping[str, Expression] | None = None
    """The columns of the input that are accumulators already, if its rows are sums."""

    def prepare(self, bridge: Bridge) -> Sums:
        parts = bridge.aggregate_parts(self.step.plan)
        assert parts is not None
        self.keys, self.functions, self.results = parts
        self.accumulators = accumulators_of(bridge, self.functions)
        return self

    @property
    def key(self) -> str:
        names = [_ID.sub("", str(each.name())) for each in self.keys]
        tables = [str(each.qualifier().last()) if each.qualifier().nonEmpty() else "" for each in self.keys]
        return ", ".join(f"{table}.{name}" if table and names.count(name) > 1 else name for table, name in zip(tables, names, strict=True))

    @property
    def stores(self) -> tuple[str, ...]:
        return ("one row per group",)

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,) = deltas
        names, key_names = self.accumulators.names, [f"k{index}" for index in range(len(self.keys))]
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
        merged = both.groupBy(*groups).agg(*[F.expr(f"{each.merged} AS {each.name}") for each in self.accumulators.values], *old)
        if replaces:
            merged = tracing.cut(merged)
            store.replace(tracing.cut(merged.where(f"{ROWS} <> 0").selectExpr(*groups, f"1L AS {WEIGHT}", *names), held=False))
        changed = " OR ".join(f"NOT (old_{name} <=> {name})" for name in names)
        removed, added = [f"if(old_{ROWS} IS NULL, 0L, -1L)", *(f"old_{name}" for name in names)], ["1L", *names]
        rows = merged.where(changed).selectExpr(*groups, f"stack(2, {', '.join([*removed, *added])}) AS ({', '.join([WEIGHT, *names])})")
        kept = f"{WEIGHT} <> 0 AND {ROWS} <> 0" if self.keys else f"{WEIGHT} <> 0"
        change = tracing.cut(rows.where(kept), held=not replaces)
        store.add(change)
        return self._results(tracing.bridge, change)

    def _partial(self, tracing: Tracing, delta: Delta, key_names: list[str]) -> DataFrame:
        """The sums of the change alone, one row per touched group."""
        bridge = tracing.bridge
        items = [bridge.alias(bridge.unnamed(key), name) for key, name in zip(self.keys, key_names, strict=True)]
        values = self.accumulators.arguments if self.summed is None else [(column, name) for name, column in self.summed.items()]
        items += [bridge.alias(value, name) for value, name in values]
        frame = bridge.frame(bridge.project([*items, bridge.alias(delta.weight, WEIGHT)], delta.plan))
        sums = [F.expr(f"{each.of_change if self.summed is None else each.weighted} AS {each.name}") for each in self.accumulators.values]
        if not self.keys:
            return frame.agg(*sums).selectExpr(f"0L AS {HASH}", *self.accumulators.names)
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
        rows = change.where(f"{ROWS} > 0") if self.keys else change
        for index, function in enumerate(self.functions):
            if f"h{index}" in rows.columns:
                whole = f"(h{index} + shiftright(l{index}, 32)) * {HALF}L + (l{index} & {LOW}L)"
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


def _named(bridge: Bridge, frame: DataFrame, names: list[str]) -> list[Expression]:
    own = {str(each.name()): each for each in bridge.items(frame._jdf.logicalPlan().output())}
    return [own[name] for name in names]
