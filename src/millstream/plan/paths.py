"""The paths of rows through a query, for people who read a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.plan.components import HasSideTables
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import AnyNode, SinkNode, SourceNode, TransformNode
from millstream.plan.topology import Topology

Path = tuple[str, ...]


def paths_to_root(plan: QueryPlan) -> tuple[Path, ...]:
    """From every source to the root."""
    found: dict[str, list[Path]] = {}
    for node in plan.above:
        ways = [(*way, node.name) for name in node.inputs for way in found.get(name, [])]
        found[node.name] = ways or [(node.name,)]
    return tuple(found[plan.root.name])


def path_to_sink(plan: QueryPlan, end: SinkNode | TransformNode) -> Path:
    """From the root to the input of an output; empty for a sink that receives only rejects or late rows."""
    steps: list[str] = []
    node = plan.node(end.inputs[0]) if end.inputs else None
    while node is not None and node.name != plan.root.name:
        steps.insert(0, node.name)
        node = plan.node(node.inputs[0])
    return (plan.root.name, *steps) if node is not None else ()


def reads_of(source: SourceNode, plans: Iterable[QueryPlan]) -> Mapping[str, int]:
    """Query → how often each of its epochs reads a source."""
    return {plan.name: plan.scans(source) for plan in plans if source.name in {node.name for node in plan.sources}}


def tables_beside(node: AnyNode, topology: Topology) -> tuple[str, ...]:
    """A short description of each table that a node looks up rows in."""
    names = node.lookup_names if isinstance(node, TransformNode) else ()
    dynamic = [topology.by_name[name] for name in names if name in topology.by_name]
    named = [f"{table.name} (dynamic table, {getattr(table.component, 'backend', table.component.type)})" for table in dynamic]
    return (*named, *(node.component.side_tables if isinstance(node.component, HasSideTables) else ()))
