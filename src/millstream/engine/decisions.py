"""How a query runs is decided from its text. Where Spark's plan shows that the text misled, the node is kept up to date instead, which is
right for every query, and the checkpoint remembers it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace

from millstream.checkpoint.layout import OWN, Checkpoint
from millstream.errors import PlanMismatchError
from millstream.plan.document import node_document
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.topology import Topology

_FOLDER = f"{OWN}/decisions"


def recall(topology: Topology, checkpoint: Checkpoint) -> Topology:
    """The topology with the decisions of earlier runs, as far as the texts are the same."""
    if not checkpoint.storage.exists(_FOLDER):
        return topology
    stored = checkpoint.storage.child(_FOLDER)
    return decide(topology, [node.name for node in topology.transforms if stored.read(node.name) == _digest(node)])


def find_misjudged(topology: Topology, error: PlanMismatchError) -> tuple[str, ...]:
    """The nodes of an error, if all of them can be kept up to date; else none."""
    names = tuple(dict.fromkeys(found.node for found in error.diagnostics))
    return names if all(_kept(topology.by_name.get(name)) for name in names) else ()


def decide(topology: Topology, names: Collection[str]) -> Topology:
    """The topology in which the named nodes are kept up to date."""
    if not names:
        return topology
    return replace(topology, nodes=tuple((_kept(node) or node) if node.name in names else node for node in topology.nodes))


def remember(topology: Topology, names: Collection[str], checkpoint: Checkpoint) -> None:
    for name in names:
        checkpoint.storage.put(f"{_FOLDER}/{name}", _digest(topology.node(name)))


def _kept(node: AnyNode | None) -> AnyNode | None:
    kept = node.component.kept_up_to_date() if isinstance(node, TransformNode) else None
    return replace(node, component=kept) if isinstance(node, TransformNode) and kept is not None else None


def _digest(node: AnyNode) -> bytes:
    """Of what a decision depends on."""
    document = node_document(node)
    text = json.dumps([document.get("type"), document.get("sql"), document.get("emit"), list(node.inputs)])
    return hashlib.sha256(text.encode()).hexdigest().encode()
