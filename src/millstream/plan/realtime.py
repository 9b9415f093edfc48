"""The checks on real-time mode, in which Spark hands rows on as they come and knows neither epochs per sink nor staged rows.

What it cannot do it would refuse late, in words about its own operators, or not at all. So the reason is found here, before a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.components import Transform
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.function_rules import calls_of
from millstream.plan.nodes import Node
from millstream.plan.schemas import Schemas
from millstream.plan.settings import RealTime
from millstream.plan.topology import Topology

_HELP = "leave `settings.trigger` out: epochs begin as soon as rows come, and rows arrive exactly once"


def real_time_is_possible(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    if not isinstance(topology.settings.trigger, RealTime):
        return
    if any(name not in topology.by_name for node in topology.nodes for name in node.inputs):
        return
    if len(topology.ordered()) < len(topology.nodes):  # a cycle, which another rule tells
        return
    for plan in cut(topology):
        refused = next(_reasons(plan, topology), None)
        if refused is not None:
            node, reason = refused
            yield Diagnostic("MS075", f"real-time mode is not possible: {reason}", node.span, help=_HELP)
        else:
            yield from _weaker(plan.sinks[0])


def _reasons(plan: QueryPlan, topology: Topology) -> Iterator[tuple[Node, str]]:
    if len(plan.sinks) > 1:
        names = " and ".join(f"`{sink.name}`" for sink in plan.sinks)
        yield plan.sinks[0], f"{names} share the rows of `{plan.name}`, and there can be one sink"
    for node in (*plan.nodes, *plan.sinks):
        if not node.component.real_time:
            yield node, f"{node.kind} `{node.name}` of type `{node.component.type}` works on whole epochs"
        if node.kind == "source" and plan.bounded:
            yield node, f"source `{node.name}` is bounded, and has an end to find"
        if node.stateful:
            yield node, f"`{node.name}` keeps state"
        if node.isolates:
            yield node, f"bad rows of `{node.name}` cannot be kept apart or counted, only `on_error: fail` is left"
        if called := calls_of(node, topology.functions):
            yield node, f"`{node.name}` calls `{called[0].name}`, a function in Python"
        if isinstance(node.component, Transform) and (node.component.finishes or node.component.renewed):
            yield node, f"results of `{node.name}` are made epoch by epoch"


def _weaker(sink: Node) -> Iterator[Diagnostic]:
    """Rows come twice after a failure: the user is told, unless the file says so itself."""
    chosen = sink.component.model_dump(mode="json", by_alias=True, exclude_unset=True).get("guarantee")
    if chosen is None:
        message = f"sink `{sink.name}` is written at least once in real-time mode"
        yield Diagnostic("MS075", message, sink.span, "warning", help="`guarantee: at_least_once` says that this is meant")
    elif chosen != "at_least_once":
        message = f"real-time mode is not possible: sink `{sink.name}` asks for `guarantee: {chosen}`"
        yield Diagnostic("MS075", message, sink.place("guarantee"), help=_HELP)
