"""Diagrams of a plan: mermaid for web pages, a tree for terminals."""

from __future__ import annotations

import re

from millstream.plan.components import HasSideTables
from millstream.plan.error_policy import dead_letter_sink_of
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.paths import tables_beside
from millstream.plan.topology import Topology

_SHAPES = {"source": ('(["', '"])'), "transform": ('["', '"]'), "sink": ('[/"', '"/]')}


def mermaid(topology: Topology) -> str:
    """A flowchart; rejects and late rows are dotted lines."""
    lines = ["flowchart LR"]
    for node in topology.nodes:
        opening, closing = _SHAPES[node.kind]
        lines.append(f"    {_id(node.name)}{opening}{node.name}<br/><small>{node.component.type}</small>{closing}")
    for node in topology.nodes:
        lines += [f"    {_id(parent)} --> {_id(node.name)}" for parent in node.inputs]
        if node.dead_letter:
            lines.append(f"    {_id(node.name)} -. rejects .-> {_id(node.dead_letter)}")
        if letter := dead_letter_sink_of(node.late):
            lines.append(f"    {_id(node.name)} -. late rows .-> {_id(letter)}")
        lines += _tables(node)
    return "\n".join(lines)


def _tables(node: AnyNode) -> list[str]:
    """The tables that a node looks up rows in: nodes, or drawn next to it."""
    names = node.lookup_names if isinstance(node, TransformNode) else ()
    lines = [f"    {_id(table)} -. looked up .-> {_id(node.name)}" for table in names]
    for index, table in enumerate(node.component.side_tables if isinstance(node.component, HasSideTables) else ()):
        lines.append(f'    {_id(node.name)}_table_{index}[("{table.replace(chr(34), chr(39))}")] -. looked up .-> {_id(node.name)}')
    return lines


def tree(topology: Topology) -> str:
    """One tree per source. A node with several inputs is drawn once; the other places refer to it."""
    drawn: set[str] = set()
    lines: list[str] = []
    for source in topology.sources:
        lines.append(_label(source, topology))
        _branches(topology, source, "", drawn, lines)
    return "\n".join(lines)


def _branches(topology: Topology, node: AnyNode, margin: str, drawn: set[str], lines: list[str]) -> None:
    children: list[tuple[AnyNode, str]] = [(child, "─▶ ") for child in topology.consumers(node.name)]
    children += [(topology.node(letter), "╌▷ ") for letter in node.dead_letter_sinks if letter in topology.by_name]
    for index, (child, arrow) in enumerate(children):
        last = index == len(children) - 1
        again = child.name in drawn
        lines.append(f"{margin}{'└' if last else '├'}{arrow}{_label(child, topology)}{' ↑' if again else ''}")
        if not again:
            drawn.add(child.name)
            _branches(topology, child, margin + ("    " if last else "│   "), drawn, lines)


def _label(node: AnyNode, topology: Topology) -> str:
    tables = ", ".join(tables_beside(node, topology))
    return f"{node.name} ({node.component.type})" + (f" ⟵ {tables}" if tables else "")


def _id(name: str) -> str:
    return "n_" + re.sub(r"\W", "_", name)
