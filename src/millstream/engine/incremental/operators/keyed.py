"""Steps that work key by key: the rows of a touched key are computed again from its stored input.

This covers every aggregate and window function, and LIMIT, which has one key for all rows. What was returned for a key is stored too, and
exactly that is removed: `row_number()` among ties, `collect_list()` or a sum of floating-point numbers may differ when computed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame

from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import HASH, WEIGHT, consolidated, negated, partitioned, repeated, touched_by, union
from millstream.sql.catalyst.bridge import Bridge, Expression, Plan


@dataclass
class Keyed(Operator):
    """The touched keys, computed again."""

    kind: ClassVar[str] = "by key"

    keys: list[Expression] = field(default_factory=list)
    """Empty: all rows have one key."""

    @property
    def key(self) -> str:
        return ", ".join(str(each.sql()) for each in self.keys) or "all rows"

    @property
    def stores(self) -> tuple[str, ...]:
        return ("its input", "its result")

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,), relations = deltas, tracing.relations
        below = self.inputs[0].step
        hashed = relations.frame_of(delta, below.columns, self.keys)
        change = tracing.cut(consolidated(partitioned(hashed, tracing.partitions)))
        given = tracing.store(self.number, "input", change)
        hashes = touched_by([change])
        before = given.at(hashes) if self.keys else given.frame
        fresh = self._compute(tracing, repeated(consolidated(union([before, change]))))
        returned = tracing.store(self.number, "result", fresh)
        old = returned.at(hashes) if self.keys else returned.frame
        result = tracing.cut(consolidated(union([fresh, negated(old)])))
        given.add(change)
        returned.add(result)
        return relations.delta_of(result, self.step.columns)

    def _compute(self, tracing: Tracing, rows: DataFrame) -> DataFrame:
        """The step over these rows, with the hash of their key."""
        bridge, node = tracing.bridge, self.step.plan
        plan, more = tracing.relations.plan_of(rows, self.inputs[0].step.columns, [HASH])
        key = more[HASH]
        if not self.keys:
            plan, key = self._above(bridge, node, plan), bridge.expression("0L")
        elif self.step.kind == "Aggregate":
            plan = bridge.aggregate(
                [*bridge.items(node.groupingExpressions()), key], [*bridge.items(node.aggregateExpressions()), key], plan
            )
        else:
            plan = bridge.window(node, [*bridge.items(node.partitionSpec()), key], plan)
        items = [*tracing.relations.renamed(self.step.columns), bridge.alias(bridge.expression("1L"), WEIGHT), bridge.alias(key, HASH)]
        return bridge.frame(bridge.project(items, plan))

    def _above(self, bridge: Bridge, node: Plan, leaf: Plan) -> Plan:
        """The steps from this one down to its input, over other rows: LIMIT includes the ORDER BY below it."""
        child = bridge.children(node)[0]
        below = leaf if child.fastEquals(self.inputs[0].step.plan) else self._above(bridge, child, leaf)
        return bridge.with_children(node, [below])
