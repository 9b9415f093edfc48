"""Checks on names: they are allowed, and no two nodes have the same name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from millstream.errors import Diagnostic
from millstream.plan.nodes import AnyNode
from millstream.plan.schemas import Schemas
from millstream.plan.topology import Topology

_SEPARATORS = frozenset("/\\\0\n")


_NAME = re.compile(r"[^\W\d_][\w-]*(\.[\w-]+)*")


def names_are_allowed(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    if not topology.name.strip() or topology.name.startswith(".") or set(topology.name) & _SEPARATORS:
        help_ = "its checkpoint is a folder of that name: leave out `/` and `\\`, and a dot at the start"
        yield Diagnostic("MS017", f"`{topology.name}` cannot be the name of a pipeline", help=help_)
    for node in topology.nodes:
        if not _NAME.fullmatch(node.name):
            help_ = "start with a letter; use letters, digits, `_`, `-` and dots"
            yield Diagnostic("MS017", f"`{node.name}` cannot be the name of a {node.kind}", node.span, help=help_, node=node.name)


def names_are_unique(topology: Topology, schemas: Schemas) -> Iterator[Diagnostic]:
    first: dict[str, AnyNode] = {}
    for node in topology.nodes:
        other = first.setdefault(node.name, node)
        if other is not node:
            line = _place_of(other, node)
            yield Diagnostic(
                "MS020",
                f"{node.kind} `{node.name}` has the name of a {other.kind}{line}",
                node.span,
                help="rename one of them",
                node=node.name,
            )


def _place_of(other: AnyNode, node: AnyNode) -> str:
    """The place of another node, relative to a node."""
    if other.span is None:
        return ""
    return f" in line {other.span.line}" if node.span and node.span.file == other.span.file else f" in {other.span.file}:{other.span.line}"
