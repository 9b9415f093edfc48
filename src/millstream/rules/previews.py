"""Finds columns that the pipeline does not declare: pinned by an earlier run, or read from the system that stores the schema.

Only sources with an outside schema are asked, for two seconds at most. Nothing is written. An unknown schema is a warning: the rest of the
pipeline is still checked.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, MillstreamError
from millstream.plan.components import NodeContext, Previews
from millstream.plan.nodes import SourceNode
from millstream.plan.secret_references import unreadable_of
from millstream.plan.topology import Topology
from millstream.rules import check


def check_previews(topology: Topology, kept: Storage | None) -> list[Diagnostic]:
    """Findings that a preview of the columns adds; `kept` is the folder of the checkpoint, if it is readable."""
    nodes = [node for node in topology.sources if node.component.output() is None]
    found: dict[str, pa.Schema] = {}
    told: list[Diagnostic] = []
    for node in nodes:
        if missing := list(unreadable_of(node)):
            told += missing
            continue
        try:
            schema = _preview(node, topology.directory, kept)
        except MillstreamError as error:
            reason = error.diagnostics[0]
            message = f"the columns of `{node.name}` are not checked: {reason.message}"
            told.append(Diagnostic("MS106", message, node.span, "warning", reason.detail, reason.help))
        else:
            found |= {node.name: schema} if schema is not None else {}
    return [*(check(topology, found) if found else ()), *told]


def _preview(node: SourceNode, directory: Path, kept: Storage | None) -> pa.Schema | None:
    if kept is None:
        return None
    run = node.component.open(NodeContext(node.name, directory, kept.child(f"_millstream/nodes/{node.name}")))
    return run.preview() if isinstance(run, Previews) else None
