"""Steps over closed windows: all rows of a window arrive in one epoch, so a step that works window by window needs no rows of others."""

from __future__ import annotations

from typing import ClassVar

from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import WEIGHT


class ByWindow(Operator):
    """An aggregate, a join or window functions whose key holds the window: the step itself, over the rows of the epoch."""

    kind: ClassVar[str] = "by window"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        bridge, plan = tracing.bridge, self.step.plan
        pairs = zip(self.step.children, deltas, strict=True)
        inputs = [bridge.project(bridge.items(child.plan.output()), delta.plan) for child, delta in pairs]
        weight = bridge.alias(bridge.expression("1L"), WEIGHT)
        computed = bridge.project([*bridge.items(plan.output()), weight], bridge.with_children(plan, inputs))
        return Delta(computed, weight.toAttribute())
