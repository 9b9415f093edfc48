"""Cutting a topology into queries.

A root is a source, or the last node on a path with more than one streaming input: the streaming plan ends there and per-epoch work
begins. All sinks under one root share one query, hence one epoch. Bad rows of a node are reported by one query alone, its owner.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.plan.components import Transform
from millstream.plan.declarations import UserFunction
from millstream.plan.nodes import Node
from millstream.plan.topology import Topology


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """One Spark query: what streams into its root, and what happens to every epoch below."""

    root: Node
    above: tuple[Node, ...]
    """Everything above the root, sources first, the root last."""
    below: tuple[Node, ...]
    """Transforms under the root, inputs first."""
    sinks: tuple[Node, ...]
    """Dead-letter sinks first."""
    owned: frozenset[str]
    """Nodes whose bad rows this query reports."""
    hoists: bool = True
    """Whether plain steps right under the root join the streaming plan."""
    functions: tuple[UserFunction, ...] = ()
    """The user's functions that its SQL can call."""

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def sources(self) -> tuple[Node, ...]:
        return tuple(node for node in self.above if node.kind == "source")

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.above, *self.below)

    @property
    def stateful(self) -> bool:
        return any(isinstance(node.component, Transform) and node.component.stateful for node in self.above)

    @property
    def outlet(self) -> Node:
        """Where the streaming plan really ends. Plain steps that all rows pass right after the root are planned once and not per epoch."""
        return self.streamed[-1]

    @property
    def streamed(self) -> tuple[Node, ...]:
        """The nodes of the streaming plan: what stands above the root, and the steps that joined."""
        joined: list[Node] = []
        node = self.root
        while self.hoists and not node.isolates and self.consumers(node.name) == 1:
            following = next((step for step in self.below if node.name in step.inputs and not step.isolates), None)
            if following is None:
                break
            node = following
            joined.append(node)
        return (*self.above, *joined)

    def node(self, name: str) -> Node:
        return next(node for node in (*self.nodes, *self.sinks) if node.name == name)

    def consumers(self, name: str) -> int:
        """How many nodes and sinks of this query read a node of it."""
        return sum(name in node.inputs for node in (*self.below, *self.sinks)) + (name in self.owned and self.node(name).isolates)

    def rejecting(self, sink: Node) -> tuple[Node, ...]:
        """The nodes of this query whose bad rows a sink takes."""
        return tuple(node for node in self.nodes if node.name in self.owned and node.dead_letter == sink.name)

    @property
    def tagged(self) -> bool:
        """Whether bad rows from above the root come out of it, with the names of their nodes."""
        return any(node.isolates and node.name in self.owned for node in self.above if node.name != self.root.name)

    @property
    def dropping(self) -> tuple[Node, ...]:
        """The nodes of this query that drop their bad rows."""
        return tuple(node for node in self.nodes if node.name in self.owned and node.on_error == "drop")

    def scans(self, source: Node) -> int:
        """How often one run of the root's plan reads a source: once per path."""
        paths = {source.name: 1}
        for node in self.above:
            paths.setdefault(node.name, sum(paths.get(name, 0) for name in node.inputs))
        return max(1, paths[self.root.name])


def cut(topology: Topology) -> tuple[QueryPlan, ...]:
    """The queries of a pipeline, in the order of their roots."""
    roots: dict[str, list[Node]] = {}
    for sink in topology.sinks:
        if sink.inputs:
            roots.setdefault(root_of(topology, sink.inputs[0]).name, []).append(sink)
    ordered = [node.name for node in topology.ordered() if node.name in roots]
    owners = _owners(topology, ordered)
    return tuple(_query(topology, name, roots[name], owners) for name in ordered)


def root_of(topology: Topology, name: str) -> Node:
    node = topology.node(name)
    stateful = isinstance(node.component, Transform) and node.component.stateful
    while node.kind != "source" and len(node.inputs) == 1 and not stateful:
        node = topology.node(node.inputs[0])
        stateful = isinstance(node.component, Transform) and node.component.stateful
    return node


def _query(topology: Topology, root: str, sinks: list[Node], owners: dict[str, str]) -> QueryPlan:
    above = topology.upstream(root)
    names = {node.name for node in above}
    used = {node.name for sink in sinks for node in topology.upstream(sink.name)}
    below = tuple(node for node in topology.ordered() if node.name in used - names and node.kind == "transform")
    owned = frozenset(name for name, owner in owners.items() if owner == root)
    letters = [topology.node(node.dead_letter) for node in (*above, *below) if node.name in owned and node.dead_letter]
    return QueryPlan(
        topology.node(root), above, below, (*{node.name: node for node in letters}.values(), *sinks), owned, functions=topology.functions
    )


def _owners(topology: Topology, roots: list[str]) -> dict[str, str]:
    """Node → the query that reports its bad rows: the one where it stands at or below the root, else the first above whose root it is"""
    owners: dict[str, str] = {}
    for root in roots:
        owners[root] = root
        for sink in topology.sinks:
            if sink.inputs and root_of(topology, sink.inputs[0]).name == root:
                below = {node.name for node in topology.upstream(sink.name)} - {node.name for node in topology.upstream(root)}
                owners |= {name: root for name in below if topology.node(name).kind == "transform"}
    for root in roots:
        for node in topology.upstream(root):
            owners.setdefault(node.name, root)
    return owners
