"""Propagates schemas through the graph: the output of every node, as far as it is known without Spark (None where it is not)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from millstream.plan.components import NamesInputs
from millstream.plan.nodes import AnyNode, SourceNode, TransformNode
from millstream.plan.topology import Topology

Schemas = Mapping[str, pa.Schema | None]


def propagate(topology: Topology, discovered: Schemas | None = None) -> dict[str, pa.Schema | None]:
    """The schema of every source and transform; `discovered` schemas are used unchanged."""
    found: dict[str, pa.Schema | None] = {name: with_event_time(topology.node(name), schema) for name, schema in (discovered or {}).items()}
    for node in topology.ordered():
        if node.name not in found and node.kind != "sink":
            found[node.name] = with_event_time(node, _output(node, inputs_of(node, found)))
    return found


def with_event_time(node: AnyNode, schema: pa.Schema | None) -> pa.Schema | None:
    """A node's schema with its event time as a timestamp."""
    return node.options.event_time.with_timestamp(schema) if schema is not None and node.options.event_time else schema


def inputs_of(node: AnyNode, schemas: Schemas) -> dict[str, pa.Schema | None]:
    """Schemas of a node's inputs, including the dynamic tables that its SQL joins."""
    named = node.component.tables() if isinstance(node.component, NamesInputs) else ()
    return {name: schemas.get(name) for name in dict.fromkeys((*node.inputs, *named))}


def _output(node: AnyNode, inputs: Schemas) -> pa.Schema | None:
    if isinstance(node, SourceNode):
        return node.component.output()
    return node.component.output(inputs) if isinstance(node, TransformNode) else None
