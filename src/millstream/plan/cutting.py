"""Cutting a topology into queries.

A root is a source, or the last node on a path that is stateful or has more than one streaming input: the streaming plan ends there
and per-epoch work begins. All sinks under one root share one query, hence one epoch. Bad rows of a node are reported by one query alone,
its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.plan.components import OutputMode, Source, Transform, Windowed
from millstream.plan.declarations import UserFunction
from millstream.plan.nodes import Node
from millstream.plan.outcomes import letter_of
from millstream.plan.tables import fills
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
    """Dead-letter sinks first; those for late rows last, since lateness shows once the rows have been counted."""
    owned: frozenset[str]
    """Nodes whose bad rows this query reports."""
    hoists: bool = True
    """Whether plain steps right under the root join the streaming plan."""
    functions: tuple[UserFunction, ...] = ()
    """The user's functions that its SQL can call."""

    @property
    def filling(self) -> tuple[Node, ...]:
        """The dynamic tables that are filled from this query, before its sinks are."""
        return tuple(node for node in self.nodes if fills(node))

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
    def bounded(self) -> bool:
        """Whether the input ends."""
        return all(isinstance(node.component, Source) and node.component.bounded for node in self.sources)

    @property
    def stateful(self) -> bool:
        return any(node.stateful for node in self.above)

    @property
    def output_mode(self) -> OutputMode:
        return self.root.component.output_mode if isinstance(self.root.component, Transform) else "append"

    @property
    def clocks(self) -> tuple[Node, ...]:
        """The nodes whose event time counts here: the last ones declared above stateful nodes."""
        found = {name for node in self.above if node.stateful for name in self._clocks_above(node)}
        return tuple(node for node in self.above if node.name in found)

    @property
    def held(self) -> bool:
        """Whether the watermark waits for the end of the input, so that no row of it can be late."""
        return self.bounded and not any(isinstance(node.component, Transform) and node.component.keeps_clock for node in self.above)

    @property
    def flushes(self) -> bool:
        """Whether the end of the input closes what is still open, in an epoch of its own."""
        return self.bounded and bool(self.clocks)

    def delay_ms(self, clock: Node) -> int:
        """How far a node's watermark stays behind the latest time."""
        lateness = [node.component.allowed_lateness for node in self.above if isinstance(node.component, Windowed)]
        assert clock.options.event_time is not None
        return clock.options.event_time.watermark.milliseconds + max((extra.milliseconds for extra in lateness if extra), default=0)

    def event_time_of(self, name: str) -> str:
        """The column that holds a node's event time, by the declaration nearest above; empty when there is none."""
        return event_time_of(self.node, name)

    def _remembering_above(self, node: Node) -> bool:
        return any(parent.stateful or self._remembering_above(parent) for parent in map(self.node, node.inputs))

    def _clocks_above(self, node: Node) -> set[str]:
        found: set[str] = set()
        for parent in (self.node(name) for name in node.inputs):
            if parent.options.event_time:
                found.add(parent.name)
            elif not parent.stateful:
                found |= self._clocks_above(parent)
        return found

    @property
    def outlet(self) -> Node:
        """Where the streaming plan really ends. Plain steps that all rows pass right after the root are planned once and not per epoch."""
        return self.streamed[-1]

    @property
    def streamed(self) -> tuple[Node, ...]:
        """The nodes of the streaming plan: what stands above the root, and the steps that joined."""
        joined: list[Node] = []
        node = self.root
        while self.hoists and not _finishes(node) and not node.isolates and self.consumers(node.name) == 1:
            following = next((step for step in self.below if node.name in step.inputs and not step.isolates), None)
            if following is None or (isinstance(following.component, Transform) and following.component.renewed):
                break
            node = following
            joined.append(node)
        return (*self.above, *joined)

    def node(self, name: str) -> Node:
        return next(node for node in (*self.nodes, *self.sinks) if node.name == name)

    def consumers(self, name: str) -> int:
        """How many nodes and sinks of this query read a node of it."""
        readers = sum(name in node.inputs for node in (*self.below, *self.sinks))
        return readers + (name in self.owned and bool(self.node(name).dead_letter)) + (self.node(name).kind == "sink")

    def rejecting(self, sink: Node) -> tuple[Node, ...]:
        """The nodes of this query whose bad rows a sink takes."""
        return tuple(node for node in self._reporting if node.dead_letter == sink.name)

    def belated(self, sink: Node) -> tuple[Node, ...]:
        """The nodes of this query whose late rows a sink takes."""
        return tuple(node for node in self.above if node.name in self.owned and letter_of(node.late) == sink.name)

    @property
    def timely(self) -> tuple[Node, ...]:
        """The stateful nodes whose late rows this query reports: those that read rows, and not the results of other stateful nodes."""
        found = [node for node in self.above if node.stateful and node.name in self.owned and isinstance(node.component, Windowed)]
        return tuple(node for node in found if not self._remembering_above(node))

    @property
    def tagged(self) -> bool:
        """Whether bad rows from above the root come out of it, with the names of their nodes."""
        return any(node.isolates and node.name in self.owned for node in self.above if node.name != self.root.name)

    @property
    def dropping(self) -> tuple[Node, ...]:
        """The nodes of this query that drop their bad rows."""
        return tuple(node for node in self._reporting if node.on_error == "drop")

    @property
    def tallied(self) -> tuple[Node, ...]:
        """The nodes whose bad rows no sink counts for them: they drop them, or share a dead-letter sink with other nodes."""
        shared = [nodes for sink in self.sinks if len(nodes := self.rejecting(sink)) > 1]
        return (*self.dropping, *(node for nodes in shared for node in nodes))

    @property
    def _reporting(self) -> tuple[Node, ...]:
        """The nodes whose bad rows this query reports."""
        return tuple(node for node in (*self.nodes, *self.sinks) if node.isolates and node.name in self.owned)

    def scans(self, source: Node) -> int:
        """How often one run of the streaming plan reads a source: once per path, and once more for every node whose bad rows leave it."""
        paths = {source.name: 1}
        for node in self.above:
            paths.setdefault(node.name, sum(paths.get(name, 0) * _reads(node, name) for name in node.inputs))
        leaving = [node.name for node in self.above if node.isolates and node.name in self.owned and node is not self.root]
        return max(1, paths[self.root.name] + sum(paths[name] for name in leaving))

    def readers(self, name: str) -> int:
        """How often an epoch reads a node's frame. That of the outlet also holds the bad rows of what stands above the root."""
        if name != self.outlet.name:
            return self.consumers(name)
        letters = {node.dead_letter for node in self.above if node.dead_letter and node.name in self.owned and node is not self.root}
        return self.consumers(name) + len(letters)


def cut(topology: Topology) -> tuple[QueryPlan, ...]:
    """The queries of a pipeline, in the order of their roots."""
    roots: dict[str, list[Node]] = {}
    for end in topology.ends:
        if end.inputs:
            roots.setdefault(root_of(topology, end.inputs[0]).name, []).append(end)
    ordered = [node.name for node in topology.ordered() if node.name in roots]
    owners = _owners(topology, ordered)
    return tuple(_query(topology, name, roots[name], owners) for name in ordered)


def event_time_of(node_of: Callable[[str], Node], name: str) -> str:
    """The column that holds a node's event time, by the declaration nearest above; empty when there is none."""
    node = node_of(name)
    if node.options.event_time:
        return node.options.event_time.column
    return "" if node.stateful or not node.inputs else event_time_of(node_of, node.inputs[0])


def root_of(topology: Topology, name: str) -> Node:
    node = topology.node(name)
    while node.kind != "source" and len(node.inputs) == 1 and not node.stateful:
        node = topology.node(node.inputs[0])
    return node


def _reads(node: Node, name: str) -> int:
    return node.component.reads(name, node.isolates) if isinstance(node.component, Transform) else 1


def _finishes(node: Node) -> bool:
    return isinstance(node.component, Transform) and node.component.finishes


def _query(topology: Topology, root: str, ends: list[Node], owners: dict[str, str]) -> QueryPlan:
    above = topology.upstream(root)
    names = {node.name for node in above}
    used = {node.name for end in ends for node in topology.upstream(end.name)}
    sinks = [end for end in ends if end.kind == "sink"]
    below = tuple(node for node in topology.ordered() if node.name in used - names and node.kind == "transform")
    owned = frozenset(name for name, owner in owners.items() if owner == root)
    reporting = [node for node in (*above, *below, *sinks) if node.name in owned and (node.kind != "sink" or node.isolates)]
    belated = dict.fromkeys(letter_of(node.late) for node in reporting if letter_of(node.late))
    letters = dict.fromkeys(node.dead_letter for node in reporting if node.dead_letter and node.dead_letter not in belated)
    first, last = ([topology.node(name) for name in names if name] for names in (letters, belated))
    return QueryPlan(topology.node(root), above, below, (*first, *sinks, *last), owned, functions=topology.functions)


def _owners(topology: Topology, roots: list[str]) -> dict[str, str]:
    """Node → the query that reports its bad rows: the one where it stands at or below the root, else the first above whose root it is"""
    owners: dict[str, str] = {}
    for root in roots:
        owners[root] = root
        for sink in topology.ends:
            if sink.inputs and root_of(topology, sink.inputs[0]).name == root:
                below = {node.name for node in topology.upstream(sink.name)} - {node.name for node in topology.upstream(root)}
                owners |= {name: root for name in below if topology.node(name).kind == "transform"} | {sink.name: root}
    for root in roots:
        for node in topology.upstream(root):
            owners.setdefault(node.name, root)
    return owners
