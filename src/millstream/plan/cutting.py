"""Cuts a topology into queries.

A root is a source, or the last node on a path that is stateful or has more than one streaming input: the streaming plan ends there and
per-epoch work begins. All sinks under one root share one query, hence one epoch. Exactly one query, the owner, reports the rejects of a
node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from millstream.plan.components import Expiring, OutputMode, Windowed
from millstream.plan.declarations import UserFunction
from millstream.plan.error_policy import dead_letter_sink_of
from millstream.plan.lookup_tables import fills
from millstream.plan.nodes import AnyNode, SinkNode, SourceNode, StreamNode, TransformNode
from millstream.plan.options import Duration
from millstream.plan.topology import Topology


@dataclass(frozen=True)
class QueryPlan:
    """One Spark query: the streaming plan above its root, and the per-epoch steps below."""

    root: StreamNode
    above: tuple[StreamNode, ...]
    """All nodes above the root, sources first, the root last."""
    below: tuple[TransformNode, ...]
    """Transforms under the root, inputs first."""
    sinks: tuple[SinkNode, ...]
    """Dead-letter sinks first; those for late rows last, because late rows are known after the rows have been counted."""
    owned: frozenset[str]
    """Nodes whose rejects this query reports."""
    fuses_below_root: bool = True
    """Whether plain steps right below the root join the streaming plan."""
    functions: tuple[UserFunction, ...] = ()
    """The user's functions that its SQL can call."""

    @cached_property
    def filling(self) -> tuple[TransformNode, ...]:
        """The dynamic tables that this query fills, before its sinks run."""
        return tuple(node for node in self.nodes if isinstance(node, TransformNode) and fills(node))

    @property
    def name(self) -> str:
        return self.root.name

    @cached_property
    def sources(self) -> tuple[SourceNode, ...]:
        return tuple(node for node in self.above if isinstance(node, SourceNode))

    @cached_property
    def nodes(self) -> tuple[StreamNode, ...]:
        return (*self.above, *self.below)

    @cached_property
    def bounded(self) -> bool:
        """Whether the input ends."""
        return all(node.component.bounded for node in self.sources)

    @cached_property
    def stateful(self) -> bool:
        return any(node.stateful for node in self.above)

    @cached_property
    def output_mode(self) -> OutputMode:
        if self.maintained:
            return "append"
        return self.root.component.output_mode if isinstance(self.root, TransformNode) else "append"

    @cached_property
    def maintained(self) -> tuple[TransformNode, ...]:
        """The nodes above the root whose results are kept up to date from changes: incremental ones, nodes that Spark cannot chain with
        them, and everything below these. Empty when no node is incremental.
        """
        found: dict[str, TransformNode] = {}
        for node in self.above if any(_is_incremental(node) for node in self.above) else ():
            if isinstance(node, TransformNode) and (_is_updating(node) or any(name in found for name in node.inputs)):
                found[node.name] = node
        return tuple(found.values())

    @cached_property
    def feeding(self) -> tuple[str, ...]:
        """The nodes that the maintained ones read, and that are not maintained; in the order of `above`, as Spark numbers its sources."""
        read = {name for node in self.maintained for name in node.inputs} - {node.name for node in self.maintained}
        return tuple(node.name for node in self.above if node.name in read)

    def ttls_of(self, name: str) -> tuple[Duration | None, ...]:
        """How long the maintained nodes keep the rows of a node that feeds them; None: for ever."""
        return tuple(dict.fromkeys(ttl_of(node) for node in self.maintained if name in node.inputs))

    @cached_property
    def clocks(self) -> tuple[StreamNode, ...]:
        """The nodes whose event time applies here: the last declared ones above stateful nodes."""
        waiting = [node for node in self.above if node.stateful and (node not in self.maintained or _has_native_parts(node))]
        found = {name for node in waiting for name in self._clocks_above(node)}
        return tuple(node for node in self.above if node.name in found)

    @cached_property
    def has_native_state(self) -> bool:
        """Whether Spark's own operators keep state: then every epoch runs its streaming plan."""
        return any(node.stateful and (node not in self.maintained or _has_native_parts(node)) for node in self.above)

    @cached_property
    def held(self) -> bool:
        """Whether the watermark waits for the end of the input, so that no row can be late."""
        return self.bounded and not any(isinstance(node, TransformNode) and node.component.keeps_watermark for node in self.above)

    @cached_property
    def flushes(self) -> bool:
        """Whether a separate epoch at the end of the input closes what is still open."""
        return self.bounded and (bool(self.clocks) or self.final)

    @cached_property
    def final(self) -> bool:
        """Whether the root's result is returned once, in the epoch that ends the bounded input."""
        return bool(self.maintained) and isinstance(self.root, TransformNode) and self.root.component.final

    def delay_ms(self, clock: str) -> int:
        """The delay of a node's watermark behind the latest time."""
        lateness = [node.component.allowed_lateness for node in self.above if isinstance(node.component, Windowed)]
        event_time = self.node(clock).options.event_time
        assert event_time is not None
        return event_time.watermark.milliseconds + max((extra.milliseconds for extra in lateness if extra), default=0)

    def event_time_of(self, name: str) -> str:
        """The column with a node's event time, from the nearest declaration above; empty when there is none."""
        return event_time_of(self.node, name)

    def _has_state_above(self, node: AnyNode) -> bool:
        return any(parent.stateful or self._has_state_above(parent) for parent in map(self.node, node.inputs))

    def _clocks_above(self, node: AnyNode) -> set[str]:
        found: set[str] = set()
        for parent in (self.node(name) for name in node.inputs):
            if parent.options.event_time:
                found.add(parent.name)
            elif not parent.stateful:
                found |= self._clocks_above(parent)
        return found

    @cached_property
    def stream_end(self) -> StreamNode:
        """The node where the streaming plan ends. Plain steps right after the root that all rows pass are planned once, not per epoch."""
        return self.streamed[-1]

    @cached_property
    def streamed(self) -> tuple[StreamNode, ...]:
        """The nodes of the streaming plan: those above the root, and the steps that joined."""
        joined: list[TransformNode] = []
        node: StreamNode = self.root
        while (
            self.fuses_below_root and not self.maintained and not _has_tail(node) and not node.isolates and self.consumers(node.name) == 1
        ):
            following = next((step for step in self.below if node.name in step.inputs and not step.isolates), None)
            if following is None or following.component.rebuilt_per_epoch:
                break
            joined.append(following)
            node = following
        return (*self.above, *joined)

    def steps_to(self, name: str) -> tuple[StreamNode, ...]:
        """A node of the streaming plan and all nodes above it, from it upwards."""
        wanted, found = {name}, list[StreamNode]()
        for node in reversed(self.streamed):
            if node.name in wanted:
                found.append(node)
                wanted.update(node.inputs)
        return tuple(found)

    def is_handed_over(self, name: str) -> bool:
        """Whether Spark hands over the rows of a node for each epoch; those of nodes above are parts of its streaming plan."""
        return name == self.stream_end.name or any(name == node.name for node in self.below if node not in self.streamed)

    @cached_property
    def by_name(self) -> dict[str, AnyNode]:
        return {node.name: node for node in (*self.nodes, *self.sinks)}

    def node(self, name: str) -> AnyNode:
        return self.by_name[name]

    def consumers(self, name: str) -> int:
        """How many nodes and sinks of this query read a node of it."""
        readers = sum(name in node.inputs for node in (*self.below, *self.sinks))
        return readers + (name in self.owned and bool(self.node(name).dead_letter)) + (self.node(name).kind == "sink")

    def nodes_rejecting_to(self, sink: AnyNode) -> tuple[AnyNode, ...]:
        """The nodes of this query whose rejects a sink receives."""
        return tuple(node for node in self._reporting if node.dead_letter == sink.name)

    def late_rows_of(self, sink: AnyNode) -> tuple[AnyNode, ...]:
        """The nodes of this query whose late rows a sink receives."""
        return tuple(node for node in self.above if node.name in self.owned and dead_letter_sink_of(node.late) == sink.name)

    @cached_property
    def reporting_late(self) -> tuple[TransformNode, ...]:
        """The stateful nodes whose late rows this query reports: those that read rows, and not results of other stateful nodes."""
        stateful = [node for node in self.above if isinstance(node, TransformNode) and node.stateful]
        waiting = [node for node in stateful if node not in self.maintained or _has_native_parts(node)]
        found = [node for node in waiting if node.name in self.owned]
        return tuple(node for node in found if isinstance(node.component, Windowed) and not self._has_state_above(node))

    @cached_property
    def tagged(self) -> bool:
        """Whether the root's frame contains rejects from above it, with the names of their nodes."""
        return any(node.isolates and node.name in self.owned for node in self.above if node.name != self.root.name)

    @cached_property
    def dropping(self) -> tuple[AnyNode, ...]:
        """The nodes of this query that drop their rejects."""
        return tuple(node for node in self._reporting if node.on_error == "drop")

    @cached_property
    def counted(self) -> tuple[AnyNode, ...]:
        """The nodes whose rejects no sink counts: they drop them, or share a dead-letter sink with other nodes."""
        shared = [nodes for sink in self.sinks if len(nodes := self.nodes_rejecting_to(sink)) > 1]
        return (*self.dropping, *(node for nodes in shared for node in nodes))

    @cached_property
    def _reporting(self) -> tuple[AnyNode, ...]:
        """The nodes whose rejects this query reports."""
        return tuple(node for node in (*self.nodes, *self.sinks) if node.isolates and node.name in self.owned)

    def scans(self, source: SourceNode, reads: Mapping[str, int] | None = None) -> int:
        """How often one run of the streaming plan reads a source: once per path, and once more for every node whose rejects leave it.
        `reads` says how often nodes that feed maintained ones are read.
        """
        paths = {source.name: 1}
        for node in self.above:
            paths.setdefault(node.name, sum(paths.get(name, 0) * _reads(node, name) for name in node.inputs))
        ends = self.feeding if self.maintained else (self.root.name,)
        leaving = [node.name for node in self.above if node.isolates and node.name in self.owned and node is not self.root]
        return max(1, sum(paths[name] * (reads or {}).get(name, 1) for name in ends) + sum(paths[name] for name in leaving))

    def readers(self, name: str) -> int:
        """How often an epoch reads a node's frame. The frame of `stream_end` also holds the rejects of nodes above the root."""
        if name != self.stream_end.name:
            return self.consumers(name)
        sinks = {node.dead_letter for node in self.above if node.dead_letter and node.name in self.owned and node is not self.root}
        return self.consumers(name) + len(sinks)


def cut(topology: Topology) -> tuple[QueryPlan, ...]:
    """The queries of a pipeline, in the order of their roots."""
    roots: dict[str, list[AnyNode]] = {}
    for end in topology.outputs:
        if end.inputs:
            roots.setdefault(root_of(topology, end.inputs[0]).name, []).append(end)
    ordered = [node.name for node in topology.ordered() if node.name in roots]
    owners = _owners(topology, ordered)
    return tuple(_query(topology, name, roots[name], owners) for name in ordered)


def event_time_of(node_of: Callable[[str], AnyNode], name: str) -> str:
    """The column with a node's event time, from the nearest declaration above; empty when there is none."""
    node = node_of(name)
    if node.options.event_time:
        return node.options.event_time.column
    return "" if node.stateful or not node.inputs else event_time_of(node_of, node.inputs[0])


def root_of(topology: Topology, name: str) -> AnyNode:
    node = topology.node(name)
    while node.kind != "source" and len(node.inputs) == 1 and not node.stateful:
        node = topology.node(node.inputs[0])
    return node


def _reads(node: StreamNode, name: str) -> int:
    return node.component.reads(name, node.isolates) if isinstance(node, TransformNode) else 1


def ttl_of(node: StreamNode) -> Duration | None:
    return node.component.ttl if isinstance(node.component, Expiring) else None


def _is_incremental(node: StreamNode) -> bool:
    return isinstance(node, TransformNode) and node.component.incremental


def _has_native_parts(node: StreamNode) -> bool:
    return isinstance(node, TransformNode) and node.component.native_parts


def _is_updating(node: TransformNode) -> bool:
    """Whether a node's results change, or need a step per epoch: no other streaming operator of Spark can read them."""
    return node.component.incremental or (node.stateful and node.component.output_mode == "update") or node.has_tail


def _has_tail(node: StreamNode) -> bool:
    return isinstance(node, TransformNode) and node.has_tail


def _query(topology: Topology, root: str, ends: list[AnyNode], owners: dict[str, str]) -> QueryPlan:
    above = tuple(node for node in topology.up_to(root) if not isinstance(node, SinkNode))
    names = {node.name for node in above}
    used = {node.name for end in ends for node in topology.up_to(end.name)}
    sinks = [end for end in ends if isinstance(end, SinkNode)]
    below = tuple(node for node in topology.ordered() if isinstance(node, TransformNode) and node.name in used - names)
    owned = frozenset(name for name, owner in owners.items() if owner == root)
    reporting = [node for node in (*above, *below, *sinks) if node.name in owned and (node.kind != "sink" or node.isolates)]
    late_sinks = dict.fromkeys(dead_letter_sink_of(node.late) for node in reporting if dead_letter_sink_of(node.late))
    reject_sinks = dict.fromkeys(node.dead_letter for node in reporting if node.dead_letter and node.dead_letter not in late_sinks)
    by_name = {sink.name: sink for sink in topology.sinks}
    first, last = ([by_name[name] for name in names if name] for names in (reject_sinks, late_sinks))
    return QueryPlan(above[-1], above, below, (*first, *sinks, *last), owned, functions=topology.functions)


def _owners(topology: Topology, roots: list[str]) -> dict[str, str]:
    """Node → the query that reports its rejects: the one where it is at or below the root, else the first one that has it above its
    root
    """
    owners: dict[str, str] = {}
    for root in roots:
        owners[root] = root
        for sink in topology.outputs:
            if sink.inputs and root_of(topology, sink.inputs[0]).name == root:
                below = {node.name for node in topology.up_to(sink.name)} - {node.name for node in topology.up_to(root)}
                owners |= {name: root for name in below if topology.node(name).kind == "transform"} | {sink.name: root}
    for root in roots:
        for node in topology.up_to(root):
            owners.setdefault(node.name, root)
    return owners
