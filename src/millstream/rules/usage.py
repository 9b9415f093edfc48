"""Questions that several rules ask about a plan: which nodes run, and where a node names its inputs."""

from __future__ import annotations

from millstream.errors import Span
from millstream.plan.components import NamesInputs
from millstream.plan.nodes import AnyNode
from millstream.plan.topology import Topology


def used_nodes(topology: Topology) -> set[str]:
    """Nodes that lead to an output, and the tables that they look up."""
    used = {above.name for end in topology.outputs for above in topology.up_to(end.name)}
    return used | {name for node in topology.transforms for name in node.lookup_names}


def input_place(node: AnyNode, name: str) -> Span | None:
    """Where a node names one of its inputs."""
    return (node.place("from", name) if ("from",) in node.spans else _place_in_text(node, name)) or node.span


def _place_in_text(node: AnyNode, name: str) -> Span | None:
    """Where the component's text names an input."""
    for field, place in node.component.mentions(name) if isinstance(node.component, NamesInputs) else ():
        return node.text_place(field, line=place.line, column=place.column, width=place.end - place.start)
    return node.span
