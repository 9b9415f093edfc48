"""The first rows of an input that never removes a row: ORDER BY … LIMIT, and `row_number() … <= n` with its kin.

A row beyond the first `n` can never return, because no row before it goes. So only rows that can still be in the result are kept. Ties are
decided once: what is kept is what the result was computed from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame

from millstream.engine.incremental.operators.keyed import Keyed
from millstream.engine.incremental.relations import Delta, Step
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import (
    HASH,
    WEIGHT,
    column_names,
    consolidated,
    negated,
    partitioned,
    repeated,
    touched_by,
    union,
)
from millstream.sql.catalyst.bridge import Bridge, Expression

_NEW = "_new"
_RANKS = {"RowNumber": "rows", "Rank": "ranks", "DenseRank": "ranks"}
_MOST = {"LessThanOrEqual": 0, "EqualTo": 0, "LessThan": -1}
_TURNED = {"GreaterThanOrEqual": "LessThanOrEqual", "GreaterThan": "LessThan", "EqualTo": "EqualTo"}
_LIMITS = {"GlobalLimit", "LocalLimit", "Offset", "Tail"}


@dataclass
class TopRows(Keyed):
    """LIMIT, with the ORDER BY and OFFSET below it."""

    kind: ClassVar[str] = "top rows"

    most: int = field(kw_only=True)
    """How many rows can be in the result, those that OFFSET skips included."""
    order: list[Expression] = field(default_factory=list)

    @property
    def stores(self) -> tuple[str, ...]:
        return (f"the first {self.most} rows" if self.most != 1 else "the first row", "its result")

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,), relations = deltas, tracing.relations
        new = relations.frame_of(delta, self.inputs[0].step.columns, [])
        store = tracing.store(self.number, "input", new)
        kept = tracing.cut(self._first(tracing, store.frame, new))
        fresh = self._compute(tracing, kept)
        returned = tracing.store(self.number, "result", fresh)
        result = tracing.cut(consolidated(union([fresh, negated(returned.frame)])))
        store.add(tracing.cut(consolidated(union([kept, negated(store.frame)]))))
        returned.add(result)
        return relations.delta_of(result, self.step.columns)

    def _first(self, tracing: Tracing, kept: DataFrame, new: DataFrame) -> DataFrame:
        """The first of the kept rows and the new ones, each as often as it is there. Among equals, a kept row stays."""
        bridge, columns = tracing.bridge, self.inputs[0].step.columns
        both = consolidated(kept).selectExpr("*", f"0 AS {_NEW}").union(new.selectExpr("*", f"1 AS {_NEW}"))
        copies = f"explode(array_repeat(1L, cast(least({WEIGHT}, {self.most}L) AS int))) AS {WEIGHT}"
        rows = both.selectExpr(*column_names(len(columns)), copies, HASH, _NEW)
        plan, more = tracing.relations.plan_of(rows, columns, [WEIGHT, HASH, _NEW])
        first = bridge.first_rows([*self.order, bridge.ascending(more[_NEW])], self.most, plan)
        items = [*tracing.relations.renamed(columns), *(bridge.alias(more[name], name) for name in (WEIGHT, HASH))]
        return bridge.frame(bridge.project(items, first))


@dataclass
class FirstRows(TopRows):
    """The rows that LIMIT at the end of a query can return, for a result that is returned once: they are ordered then."""

    @property
    def stores(self) -> tuple[str, ...]:
        return super().stores[:1]

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,), relations = deltas, tracing.relations
        new = relations.frame_of(delta, self.step.columns, [])
        store = tracing.store(self.number, "input", new)
        kept = tracing.cut(self._first(tracing, store.frame, new))
        change = tracing.cut(consolidated(union([kept, negated(store.frame)])))
        store.add(change)
        return relations.delta_of(change, self.step.columns)


@dataclass
class TopRanks(Keyed):
    """A condition on `row_number()`, `rank()` or `dense_rank()`. A rank depends on the rows before it only, so the rows up to rank `n` have
    the same ranks without the others.
    """

    kind: ClassVar[str] = "top rows"

    most: int = field(kw_only=True)
    rank: Expression = field(kw_only=True)
    """The column with the rank that the condition limits."""
    counts: str = field(kw_only=True)
    """What the rank counts: `rows` or, where equal rows share one, `ranks`."""

    @property
    def stores(self) -> tuple[str, ...]:
        first = f"the first {self.most} {self.counts}" if self.most != 1 else f"the first {self.counts[:-1]}"
        shown = first if self.counts == "rows" else f"the rows of {first}"
        return (f"{shown} per partition" if self.keys else shown, "its result")

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,), relations = deltas, tracing.relations
        hashed = relations.frame_of(delta, self.inputs[0].step.columns, self.keys)
        change = tracing.cut(consolidated(partitioned(hashed, tracing.partitions)))
        store = tracing.store(self.number, "input", change)
        hashes = touched_by([change])
        before = store.at(hashes)
        ranked = tracing.cut(self._ranked(tracing, repeated(consolidated(union([before, change])))))
        fresh = self._filtered(tracing, ranked)
        returned = tracing.store(self.number, "result", fresh)
        result = tracing.cut(consolidated(union([fresh, negated(returned.at(hashes))])))
        store.add(tracing.cut(consolidated(union([self._without_ranks(ranked), negated(before)]))))
        returned.add(result)
        return relations.delta_of(result, self.step.columns)

    def _ranked(self, tracing: Tracing, rows: DataFrame) -> DataFrame:
        """The rows of touched partitions up to the last rank that counts, with their ranks."""
        bridge, node = tracing.bridge, self.step.children[0].plan
        plan, more = tracing.relations.plan_of(rows, self.inputs[0].step.columns, [HASH])
        ranked = bridge.window(node, [*bridge.items(node.partitionSpec()), more[HASH]], plan)
        first = bridge.filter(bridge.make("LessThanOrEqual", self.rank, bridge.expression(str(self.most))), ranked)
        return self._framed(tracing, first, more[HASH])

    def _filtered(self, tracing: Tracing, ranked: DataFrame) -> DataFrame:
        plan, more = tracing.relations.plan_of(ranked, self.step.columns, [HASH])
        return self._framed(tracing, tracing.bridge.filter(self.step.plan.condition(), plan), more[HASH])

    def _framed(self, tracing: Tracing, plan: object, key: Expression) -> DataFrame:
        bridge = tracing.bridge
        items = [*tracing.relations.renamed(self.step.columns), bridge.alias(bridge.expression("1L"), WEIGHT), bridge.alias(key, HASH)]
        return bridge.frame(bridge.project(items, plan))

    def _without_ranks(self, ranked: DataFrame) -> DataFrame:
        places = {column.id: index for index, column in enumerate(self.step.columns)}
        below = self.inputs[0].step.columns
        return ranked.selectExpr(*[f"c{places[column.id]} AS c{index}" for index, column in enumerate(below)], WEIGHT, HASH)


def limit_of(bridge: Bridge, chain: list[Step]) -> tuple[int, list[Expression]] | None:
    """How many rows of its input a chain of LIMIT, OFFSET, ORDER BY and projections can return, and in which order; None if all. Only the
    lowest limits count: those above them read what they return. The highest step comes first.
    """
    rising = list(reversed(chain))
    start = next((place for place, step in enumerate(rising) if step.kind in _LIMITS), len(rising))
    sorts = [step for step in rising[:start] if step.kind == "Sort"]
    end = next((place for place in range(start, len(rising)) if rising[place].kind == "Sort"), len(rising))
    if len(sorts) > 1 or any(not getattr(step.plan, "global")() for step in sorts):
        return None
    most: int | None = None
    for step in reversed(rising[start:end]):
        if step.kind == "Offset" and most is not None:
            most += _number(bridge, step.plan.offsetExpr()) or 0
        elif step.kind == "GlobalLimit":
            found = _number(bridge, step.plan.limitExpr())
            most = found if most is None or found is None else min(most, found)
        elif step.kind == "Tail":
            most = None
    return None if most is None else (most, bridge.items(sorts[0].plan.order()) if sorts else [])


def rank_limit_of(bridge: Bridge, step: Step) -> tuple[int, Expression, str] | None:
    """The last rank that a condition directly above window functions lets through, its column, and what it counts; None if there is none,
    or if a function needs the rows after it.
    """
    if step.kind != "Filter" or step.children[0].kind != "Window":
        return None
    ranks: dict[int, str] = {}
    for item in bridge.items(step.children[0].plan.windowExpressions()):
        kind = bridge.kind(bridge.unnamed(item).windowFunction())
        if kind not in _RANKS:
            return None
        ranks[int(item.exprId().id())] = _RANKS[kind]
    found = [limit for part in bridge.conjuncts(step.plan.condition()) for limit in _limits(bridge, part, ranks)]
    return min(found, key=lambda limit: (limit[0], limit[2] != "rows"), default=None)


def _limits(bridge: Bridge, part: Expression, ranks: dict[int, str]) -> Iterable[tuple[int, Expression, str]]:
    kind, sides = bridge.kind(part), bridge.children(part)
    if len(sides) != 2:
        return
    if bridge.kind(sides[0]) == "Literal":
        kind, sides = _TURNED.get(kind, ""), sides[::-1]
    if kind in _MOST and bridge.kind(sides[0]) == "AttributeReference" and int(sides[0].exprId().id()) in ranks:
        most = _number(bridge, sides[1])
        if most is not None:
            yield max(0, most + _MOST[kind]), sides[0], ranks[int(sides[0].exprId().id())]


def _number(bridge: Bridge, value: Expression) -> int | None:
    """The value of a whole number in the text."""
    whole = bridge.kind(value) == "Literal" and str(value.dataType().catalogString()) == "int"
    return int(value.value()) if whole and value.value() is not None else None
