"""The plan: a frozen graph of nodes, built by either front door and run by the engine.

Order is the order in which the nodes were written; `ordered()` is the order in which rows meet them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from millstream.plan.declarations import UserFunction
from millstream.plan.nodes import Node
from millstream.plan.settings import Settings
from millstream.plan.tables import bound, fills


@dataclass(frozen=True)
class Connection:
    """Options of an outside system, kept apart from pipelines."""

    name: str
    options: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """option → where its value comes from"""


@dataclass(frozen=True)
class Topology:
    """Nodes and settings of one pipeline."""

    name: str
    nodes: tuple[Node, ...]
    settings: Settings = Settings()
    connections: tuple[Connection, ...] = ()
    functions: tuple[UserFunction, ...] = field(default=(), kw_only=True)
    """The user's functions that SQL can call."""
    tests: tuple[Any, ...] = field(default=(), compare=False)
    directory: Path = field(default=Path(), compare=False)
    """Where the pipeline's own files are."""
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """setting → where its value comes from: flag, environment, millstream.yaml, pipeline, default"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", bound(self.nodes))

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @property
    def sources(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.kind == "source")

    @property
    def sinks(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.kind == "sink")

    @property
    def ends(self) -> tuple[Node, ...]:
        """Where rows go: the sinks, and the dynamic tables that the stream fills."""
        return tuple(node for node in self.nodes if node.kind == "sink" or fills(node))

    @property
    def dead_letters(self) -> dict[str, tuple[Node, ...]]:
        """dead-letter sink → the nodes whose bad or late rows it takes"""
        targets = dict.fromkeys(name for node in self.nodes for name in node.letters)
        return {name: tuple(node for node in self.nodes if name in node.letters) for name in targets}

    def node(self, name: str) -> Node:
        return self.by_name[name]

    def consumers(self, name: str) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if name in node.inputs)

    def upstream(self, name: str) -> tuple[Node, ...]:
        """The node and everything above it, sources first."""
        seen: dict[str, Node] = {}
        entered: set[str] = set()

        def visit(current: str) -> None:
            node = self.by_name.get(current)
            if node is None or current in entered:
                return
            entered.add(current)
            for parent in node.inputs:
                visit(parent)
            seen[current] = node

        visit(name)
        return tuple(seen.values())

    def ordered(self) -> tuple[Node, ...]:
        """Inputs before their readers, as far as there is no cycle."""
        seen: dict[str, Node] = {}
        for node in self.nodes:
            for above in self.upstream(node.name):
                seen.setdefault(above.name, above)
        return tuple(seen.values())

    def to_yaml(self) -> str:
        """The same pipeline as a YAML file; a SpecError when a function has no name."""
        from millstream.plan.document import to_yaml

        return to_yaml(self)
