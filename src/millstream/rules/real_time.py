"""Checks on real-time mode, in which Spark passes on rows at once, without epochs per sink and without staged rows.

Spark would refuse unsupported plans late, with messages about its own operators, or not at all. So the reason is found here, before a run.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.components import Guarantee, Sink
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import AnyNode, SinkNode, TransformNode
from millstream.plan.schemas import Schemas
from millstream.plan.settings import RealTime, Settings
from millstream.plan.topology import Topology
from millstream.rules.functions import calls_of
from millstream.rules.queries import queries_of

_HELP = "leave `settings.trigger` out: epochs begin as soon as rows come, and rows arrive exactly once"


def real_time_is_possible(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    if not isinstance(topology.settings.trigger, RealTime):
        return
    for plan in queries_of(topology, schemas):
        refused: dict[str, tuple[AnyNode, str]] = {}
        for node, reason in _reasons(plan, topology):
            refused.setdefault(node.name, (node, reason))
        for node, reason in refused.values():
            yield Diagnostic("MS075", f"real-time mode is not possible: {reason}", node.span, help=_HELP, node=node.name)
        if not refused:
            yield from _weaker(plan.sinks[0])


def promise(sink: Sink, settings: Settings) -> Guarantee:
    """The guarantee of a sink in a run with these settings."""
    return "at_least_once" if isinstance(settings.trigger, RealTime) else sink.promise


def _reasons(plan: QueryPlan, topology: Topology) -> Iterator[tuple[AnyNode, str]]:
    if len(plan.sinks) > 1:
        names = " and ".join(f"`{sink.name}`" for sink in plan.sinks)
        yield plan.sinks[0], f"{names} share the rows of `{plan.name}`, and there can be one sink"
    for source in plan.sources:
        if watching := [each.name for each in topology.side_outputs if each.sees(source.name)]:
            yield source, f"side output `{watching[0]}` sees the rows of `{source.name}` in Python"
    for node in (*plan.nodes, *plan.sinks):
        if not node.component.real_time:
            yield node, f"{node.kind} `{node.name}` of type `{node.component.type}` works on whole epochs"
        if node.kind == "source" and plan.bounded:
            yield node, f"source `{node.name}` is bounded, and real-time mode has no end"
        if node.stateful:
            yield node, f"`{node.name}` keeps state"
        if node.isolates:
            yield node, f"rejects of `{node.name}` cannot be isolated or counted; use `on_error: fail`"
        if called := calls_of(node, topology.functions):
            yield node, f"`{node.name}` calls `{called[0].name}`, a function in Python"
        if isinstance(node, TransformNode) and (node.has_tail or node.component.rebuilt_per_epoch):
            yield node, f"results of `{node.name}` are made epoch by epoch"


def _weaker(sink: SinkNode) -> Iterator[Diagnostic]:
    """Rows are written twice after a failure: warn, unless the file sets that guarantee itself."""
    chosen = sink.component.model_dump(mode="json", by_alias=True, exclude_unset=True).get("guarantee")
    if chosen is None:
        message = f"sink `{sink.name}` is written at least once in real-time mode"
        yield Diagnostic("MS075", message, sink.span, "warning", help="set `guarantee: at_least_once` to accept this")
    elif chosen != "at_least_once":
        message = f"real-time mode is not possible: sink `{sink.name}` asks for `guarantee: {chosen}`"
        yield Diagnostic("MS075", message, sink.place("guarantee"), help=_HELP)
