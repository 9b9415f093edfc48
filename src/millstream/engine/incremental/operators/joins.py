"""Joins of inputs that change."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame

from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Store, Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, column_names, consolidated, negated, partitioned, touched_by, union
from millstream.sql.catalyst.bridge import Expression


@dataclass
class Join(Operator):
    """What both kinds of join have."""

    keys: tuple[list[Expression], list[Expression]] = field(default=([], []))
    """The compared expressions of both sides. Empty: every row of one side meets every row of the other."""

    @property
    def key(self) -> str:
        return ", ".join(str(each.sql()) for each in self.keys[0]) or "all rows"

    @property
    def stores(self) -> tuple[str, ...]:
        return ("its left input", "its right input")

    def _hashed(self, tracing: Tracing, delta: Delta, side: int) -> DataFrame:
        frame = tracing.relations.frame_of(delta, self.step.children[side].columns, self.keys[side])
        return partitioned(frame, tracing.partitions)

    def _joined(self, tracing: Tracing, left: DataFrame, right: DataFrame) -> DataFrame:
        """Spark's own join of two frames. Comparing the hashes too lets both sides stay where they are."""
        bridge, relations, node = tracing.bridge, tracing.relations, self.step.plan
        left_plan, left_more = relations.plan_of(left, self.step.children[0].columns, [WEIGHT, HASH])
        right_plan, right_more = relations.plan_of(right, self.step.children[1].columns, [WEIGHT, HASH])
        same = bridge.make("EqualTo", left_more[HASH], right_more[HASH])
        own = node.condition()
        condition = bridge.make("And", own.get(), same) if own.isDefined() else same
        plan = bridge.join(left_plan, right_plan, node.joinType(), condition)
        shown = {int(each.exprId().id()) for each in bridge.items(plan.output())}
        weights = [each[WEIGHT] for each in (left_more, right_more) if int(each[WEIGHT].exprId().id()) in shown]
        named = [bridge.alias(weight, f"_w{index}") for index, weight in enumerate(weights)]
        frame = bridge.frame(bridge.project([*relations.renamed(self.step.columns), *named], plan))
        product = " * ".join(f"coalesce(_w{index}, 1L)" for index in range(len(weights)))
        return frame.selectExpr(*column_names(len(self.step.columns)), f"{product} AS {WEIGHT}")


@dataclass
class InnerJoin(Join):
    """New rows of the left side meet the old right side, and new rows of the right side meet the new left side."""

    kind: ClassVar[str] = "inner join"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        left, right = (tracing.cut(self._hashed(tracing, delta, side)) for side, delta in enumerate(deltas))
        stores = tracing.store(self.number, "left", left), tracing.store(self.number, "right", right)
        for change, name in ((left, "left"), (right, "right")):
            if tracing.is_idle(self.number, name):
                tracing.expect_none(change)
        terms = [
            self._joined(tracing, *self._hinted(tracing, "left", left, stores[1].frame)),
            self._joined(tracing, *reversed(self._hinted(tracing, "right", right, union([stores[0].frame, left])))),
        ]
        for side, (store, change) in enumerate(zip(stores, (left, right), strict=True)):
            store.add(change)
            self._say_how_it_merges(store, side)
        return tracing.relations.delta_of(union(terms), self.step.columns)

    def _say_how_it_merges(self, store: Store, side: int) -> None:
        if self.inputs[side].append_only:
            store.only_grows()

    def _hinted(self, tracing: Tracing, side: str, change: DataFrame, others: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Which rows are hashed: those of the change, or those of the other side's store if it is the smaller one."""
        other = "right" if side == "left" else "left"
        if tracing.is_compact(self.number, other) and not tracing.is_idle(self.number, side):
            return change, others.hint("shuffle_hash")
        return change.hint("shuffle_hash"), others


@dataclass
class KeyedJoin(Join):
    """Outer, semi, anti and existence joins: the join of the touched keys as it is now, minus the join as it was."""

    kind: ClassVar[str] = "join by key"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        changes = [tracing.cut(consolidated(self._hashed(tracing, delta, side))) for side, delta in enumerate(deltas)]
        stores = [tracing.store(self.number, name, change) for name, change in zip(("left", "right"), changes, strict=True)]
        hashes = tracing.cut(touched_by(changes))
        before = [store.at(hashes) for store in stores]
        after = [union([old, change]) for old, change in zip(before, changes, strict=True)]
        now = self._joined(tracing, *(consolidated(side) for side in after))
        was = self._joined(tracing, *(consolidated(side) for side in before))
        for store, change in zip(stores, changes, strict=True):
            store.add(change)
        return tracing.relations.delta_of(consolidated(union([now, negated(was)])), self.step.columns)
