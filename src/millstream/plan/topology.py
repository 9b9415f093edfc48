"""The topology, also called the plan: a frozen graph of nodes. YAML and Python build it, the engine runs it.

Nodes are in the order in which the user wrote them; `ordered()` is the order in which rows pass them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from millstream.plan.declarations import UserFunction
from millstream.plan.lookup_tables import fills, with_tables
from millstream.plan.nodes import AnyNode, SinkNode, SourceNode, TransformNode
from millstream.plan.settings import Settings
from millstream.plan.side_outputs import SideOutputNode
from millstream.plan.surroundings import with_surroundings


@dataclass(frozen=True)
class Connection:
    """Options of an outside system, shared by pipelines."""

    name: str
    options: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """option → where its value comes from"""


@dataclass(frozen=True, repr=False)
class Topology:
    """Nodes and settings of one pipeline."""

    name: str
    nodes: tuple[AnyNode, ...]
    settings: Settings = Settings()
    connections: tuple[Connection, ...] = ()
    functions: tuple[UserFunction, ...] = field(default=(), kw_only=True)
    """The user's functions that SQL can call."""
    side_outputs: tuple[SideOutputNode, ...] = field(default=(), kw_only=True)
    """What sees the rows of sources."""
    tests: tuple[Any, ...] = field(default=(), compare=False)
    directory: Path = field(default=Path(), compare=False)
    """Where the pipeline's own files are."""
    origins: dict[str, str] = field(default_factory=dict, compare=False)
    """setting → where its value comes from: flag, environment, millstream.yaml, pipeline, default"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", with_surroundings(with_tables(self.nodes)))

    def __repr__(self) -> str:
        """Names and inputs; `to_yaml()` writes everything."""
        nodes = ", ".join(f"{node.name}({', '.join(node.inputs)})" if node.inputs else node.name for node in self.nodes)
        return f"Topology({self.name!r}: {nodes or 'no nodes'})"

    @cached_property
    def by_name(self) -> dict[str, AnyNode]:
        return {node.name: node for node in self.nodes}

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, SourceNode))

    @property
    def transforms(self) -> tuple[TransformNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, TransformNode))

    @property
    def sinks(self) -> tuple[SinkNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, SinkNode))

    @property
    def outputs(self) -> tuple[AnyNode, ...]:
        """Where rows go: the sinks, and the dynamic tables that the stream fills."""
        return tuple(node for node in self.nodes if isinstance(node, SinkNode) or fills(node))

    @property
    def dead_letters(self) -> dict[str, tuple[AnyNode, ...]]:
        """dead-letter sink → the nodes whose rejects or late rows it receives"""
        targets = dict.fromkeys(name for node in self.nodes for name in node.dead_letter_sinks)
        return {name: tuple(node for node in self.nodes if name in node.dead_letter_sinks) for name in targets}

    def node(self, name: str) -> AnyNode:
        return self.by_name[name]

    def consumers(self, name: str) -> tuple[AnyNode, ...]:
        return tuple(node for node in self.nodes if name in node.inputs)

    def up_to(self, name: str) -> tuple[AnyNode, ...]:
        """The node and everything above it, sources first."""
        seen: dict[str, AnyNode] = {}
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

    def ordered(self) -> tuple[AnyNode, ...]:
        """Inputs before their readers, as far as there is no cycle."""
        seen: dict[str, AnyNode] = {}
        for node in self.nodes:
            for above in self.up_to(node.name):
                seen.setdefault(above.name, above)
        return tuple(seen.values())

    def to_yaml(self) -> str:
        """The same pipeline as a YAML file; a SpecError when a function has no name."""
        from millstream.plan.document import to_yaml

        return to_yaml(self)
