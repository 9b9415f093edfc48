"""Operators without state: each row of a change is handled for itself."""

from __future__ import annotations

from typing import ClassVar

from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.relations import Delta
from millstream.engine.incremental.tracing import Tracing
from millstream.engine.incremental.weights import WEIGHT, column_names, union

_PASSING = {"Sort", "SubqueryAlias", "Repartition", "RepartitionByExpression", "RebalancePartitions"}
"""Steps that change the order or the place of rows, and not the rows."""


class Linear(Operator):
    """Project, Filter, Expand, Generate and Python functions: the step itself, over the change."""

    kind: ClassVar[str] = "row by row"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,) = deltas
        bridge, plan, kind = tracing.bridge, self.step.plan, self.step.kind
        if kind in _PASSING:
            return delta
        if kind == "Project":
            return Delta(bridge.project([*bridge.items(plan.projectList()), delta.weight], delta.plan), delta.weight)
        if kind == "Expand":
            weight = bridge.alias(delta.weight, WEIGHT).toAttribute()
            copies = [[*bridge.items(copy), delta.weight] for copy in bridge.items(plan.projections())]
            return Delta(bridge.expand(copies, [*bridge.items(plan.output()), weight], delta.plan), weight)
        # some nodes refer to columns by their place: the weight comes after all of them, below and above
        below = bridge.project([*bridge.items(self.step.children[0].plan.output()), delta.weight], delta.plan)
        above = bridge.with_children(plan, [below])
        return Delta(bridge.project([*bridge.items(plan.output()), delta.weight], above), delta.weight)


class Shared(Operator):
    """A second use of a step: the same changes, under the columns of this use."""

    kind: ClassVar[str] = "shared"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        (delta,), bridge = deltas, tracing.bridge
        pairs = zip(self.inputs[0].step.columns, self.step.columns, strict=True)
        items = [bridge.alias(old.attribute, new.name, new.attribute.exprId()) for old, new in pairs]
        return Delta(bridge.project([*items, delta.weight], delta.plan), delta.weight)


class UnionAll(Operator):
    """The changes of all inputs."""

    kind: ClassVar[str] = "union"

    def trace(self, tracing: Tracing, deltas: list[Delta]) -> Delta:
        names, bridge, frames = column_names(len(self.step.columns)), tracing.bridge, []
        for delta, child in zip(deltas, self.step.children, strict=True):  # by position: an input can have one column twice
            columns = bridge.items(child.plan.output())
            items = [bridge.alias(column, name) for column, name in zip(columns, names, strict=True)]
            frames.append(bridge.frame(bridge.project([*items, bridge.alias(delta.weight, WEIGHT)], delta.plan)))
        return tracing.relations.delta_of(union(frames), self.step.columns)
