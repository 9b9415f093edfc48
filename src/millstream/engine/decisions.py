"""How a query runs is decided from its text. Where Spark's plan shows that the text misled, the node is kept up to date instead, which is
right for every query, and the checkpoint remembers it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

from millstream.checkpoint.layout import Checkpoint
from millstream.errors import PlanMismatchError
from millstream.plan.document import node_document
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.topology import Topology

_FILE = "kept-up-to-date"


def recall(topology: Topology, checkpoint: Checkpoint) -> Topology:
    """The topology with the decisions of earlier runs, as far as the nodes are the same."""
    known = [node for node in topology.transforms if node.component.kept_up_to_date()]
    return _decided(topology, (node.name for node in known if checkpoint.node(node.name).read(_FILE) == _digest(node)))


def revise(topology: Topology, error: PlanMismatchError) -> Topology | None:
    """The topology in which the nodes of the error are kept up to date; None if one of them cannot be."""
    names = {found.node for found in error.diagnostics}
    nodes = [topology.by_name.get(name) for name in names]
    if not all(isinstance(node, TransformNode) and node.component.kept_up_to_date() for node in nodes):
        return None
    return _decided(topology, names)


def remember(before: Topology, after: Topology, checkpoint: Checkpoint) -> None:
    """Store the decisions by which two topologies differ."""
    for old, new in zip(before.nodes, after.nodes, strict=True):
        if old.component != new.component:
            checkpoint.node(old.name).put(_FILE, _digest(old))


def _decided(topology: Topology, names: Iterable[str]) -> Topology:
    chosen = set(names)
    if not chosen:
        return topology
    return replace(topology, nodes=tuple(_kept(node) if node.name in chosen else node for node in topology.nodes))


def _kept(node: AnyNode) -> AnyNode:
    kept = node.component.kept_up_to_date() if isinstance(node, TransformNode) else None
    return replace(node, component=kept) if isinstance(node, TransformNode) and kept is not None else node


def _digest(node: AnyNode) -> bytes:
    return hashlib.sha256(json.dumps(node_document(node), sort_keys=True, default=str).encode()).hexdigest().encode()
