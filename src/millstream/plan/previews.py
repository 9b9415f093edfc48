"""Columns that a check can know although the pipeline does not say them: pinned by an earlier run, or told by whoever keeps the schema.

Only sources whose schema is kept outside are asked, and no longer than two seconds. Nothing is written. What stays unknown is a warning:
the rest of the pipeline is checked as before.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, MillstreamError
from millstream.plan.components import NodeContext, Source
from millstream.plan.confidences import unreadable_of
from millstream.plan.nodes import Node
from millstream.plan.rules import check
from millstream.plan.topology import Topology


def previewed(topology: Topology, kept: Storage | None) -> list[Diagnostic]:
    """What a look at the columns adds to the findings; `kept` is the folder of the checkpoint, when it can be read."""
    nodes = [node for node in topology.sources if isinstance(node.component, Source) and node.component.previews]
    found: dict[str, pa.Schema] = {}
    told: list[Diagnostic] = []
    for node in nodes:
        if missing := list(unreadable_of(node)):
            told += missing
            continue
        try:
            schema = _asked(node, topology.directory, kept)
        except MillstreamError as error:
            reason = error.diagnostics[0]
            message = f"the columns of `{node.name}` are not checked: {reason.message}"
            told.append(Diagnostic("MS106", message, node.span, "warning", reason.detail, reason.help))
        else:
            found |= {node.name: schema} if schema is not None else {}
    return [*(check(topology, found) if found else ()), *told]


def _asked(node: Node, directory: Path, kept: Storage | None) -> pa.Schema | None:
    assert isinstance(node.component, Source)
    storage = kept.child(f"_millstream/nodes/{node.name}") if kept is not None else None
    if storage is None:
        return None
    return node.component.preview(NodeContext(node.name, directory, storage))
