"""Pictures of a plan: mermaid for pages, a tree for terminals."""

from __future__ import annotations

import re

from millstream.plan.nodes import Node
from millstream.plan.outcomes import letter_of
from millstream.plan.topology import Topology

_SHAPES = {"source": ('(["', '"])'), "transform": ('["', '"]'), "sink": ('[/"', '"/]')}


def mermaid(topology: Topology) -> str:
    """A flowchart; bad and late rows are dotted lines."""
    lines = ["flowchart LR"]
    for node in topology.nodes:
        opening, closing = _SHAPES[node.kind]
        lines.append(f"    {_id(node.name)}{opening}{node.name}<br/><small>{node.component.type}</small>{closing}")
    for node in topology.nodes:
        lines += [f"    {_id(parent)} --> {_id(node.name)}" for parent in node.inputs]
        if node.dead_letter:
            lines.append(f"    {_id(node.name)} -. bad rows .-> {_id(node.dead_letter)}")
        if letter := letter_of(node.late):
            lines.append(f"    {_id(node.name)} -. late rows .-> {_id(letter)}")
    return "\n".join(lines)


def tree(topology: Topology) -> str:
    """One tree per source. A node with several inputs is drawn once and pointed at from the others."""
    drawn: set[str] = set()
    lines: list[str] = []
    for source in topology.sources:
        lines.append(_label(source))
        _branches(topology, source, "", drawn, lines)
    return "\n".join(lines)


def _branches(topology: Topology, node: Node, margin: str, drawn: set[str], lines: list[str]) -> None:
    children: list[tuple[Node, str]] = [(child, "─▶ ") for child in topology.consumers(node.name)]
    children += [(topology.node(letter), "╌▷ ") for letter in node.letters if letter in topology.by_name]
    for index, (child, arrow) in enumerate(children):
        last = index == len(children) - 1
        again = child.name in drawn
        lines.append(f"{margin}{'└' if last else '├'}{arrow}{_label(child)}{' ↑' if again else ''}")
        if not again:
            drawn.add(child.name)
            _branches(topology, child, margin + ("    " if last else "│   "), drawn, lines)


def _label(node: Node) -> str:
    return f"{node.name} ({node.component.type})"


def _id(name: str) -> str:
    return "n_" + re.sub(r"\W", "_", name)
