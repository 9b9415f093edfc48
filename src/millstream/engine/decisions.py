"""How a query runs is predicted from its text. Where Spark's plan shows that the text misled, the node is kept up to date instead, which is
right for every query. Where it shows that the changes of a result have no key by which its sinks could apply them, and the inputs are
bounded, the result is returned once. The checkpoint remembers both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace

from millstream.checkpoint.layout import OWN, Checkpoint
from millstream.errors import NoKeyError, PlanMismatchError
from millstream.plan.document import node_document
from millstream.plan.nodes import AnyNode, SourceNode, TransformNode
from millstream.plan.topology import Topology

_KEPT, _FINAL = f"{OWN}/decisions", f"{OWN}/final_results"


def recall(topology: Topology, checkpoint: Checkpoint) -> Topology:
    """The topology with the decisions of earlier runs, as far as what they depend on is the same."""
    for folder, changed in ((_KEPT, _kept), (_FINAL, _final)):
        if checkpoint.storage.exists(folder):
            stored = checkpoint.storage.child(folder)
            same = [node for node in topology.transforms if stored.read(node.name) == _digest(topology, node, folder)]
            topology = decide(topology, [found for node in same if (found := changed(node)) is not None])
    return topology


def find_misjudged(topology: Topology, error: PlanMismatchError) -> tuple[TransformNode, ...]:
    """The nodes of an error as they can run instead; none if one of them cannot."""
    changed = _final if isinstance(error, NoKeyError) else _kept
    names = dict.fromkeys(found.node for found in error.diagnostics)
    found = [changed(topology.by_name.get(name)) for name in names]
    return tuple(node for node in found if node is not None) if all(found) else ()


def decide(topology: Topology, decided: Collection[TransformNode]) -> Topology:
    """The topology with the nodes as they are decided."""
    if not decided:
        return topology
    by_name = {node.name: node for node in decided}
    return replace(topology, nodes=tuple(by_name.get(node.name, node) for node in topology.nodes))


def remember(topology: Topology, decided: Collection[TransformNode], checkpoint: Checkpoint) -> None:
    for node in decided:
        folder = _FINAL if node.component.final else _KEPT
        checkpoint.storage.put(f"{folder}/{node.name}", _digest(topology, topology.node(node.name), folder))


def _kept(node: AnyNode | None) -> TransformNode | None:
    kept = node.component.kept_up_to_date() if isinstance(node, TransformNode) else None
    return replace(node, component=kept) if isinstance(node, TransformNode) and kept is not None else None


def _final(node: AnyNode | None) -> TransformNode | None:
    final = node.component.returned_once() if isinstance(node, TransformNode) else None
    return replace(node, component=final) if isinstance(node, TransformNode) and final is not None else None


def _digest(topology: Topology, node: AnyNode, folder: str) -> bytes:
    """Of what a decision depends on. That a result is returned once depends on the sinks, and on whether the inputs end."""
    document = node_document(node)
    parts = [document.get("type"), document.get("sql"), document.get("emit"), list(node.inputs)]
    if folder == _FINAL:
        sinks = [sink for sink in topology.sinks if node in topology.up_to(sink.name)]
        sources = [source for source in topology.up_to(node.name) if isinstance(source, SourceNode)]
        parts = [document, *map(node_document, sinks), *([source.name, source.component.bounded] for source in sources)]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest().encode()
