"""Schemas flow down the graph: what comes out of every node, as far as it is known without Spark (None where it is not)."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from millstream.plan.components import Source, Transform
from millstream.plan.nodes import Node
from millstream.plan.topology import Topology

Schemas = Mapping[str, pa.Schema | None]


def propagate(topology: Topology, discovered: Schemas | None = None) -> dict[str, pa.Schema | None]:
    """The schema of every source and transform; `discovered` ones are taken as they are."""
    found: dict[str, pa.Schema | None] = {name: timed(topology.node(name), schema) for name, schema in (discovered or {}).items()}
    for node in topology.ordered():
        if node.name not in found and node.kind != "sink":
            found[node.name] = timed(node, _output(node, inputs_of(node, found)))
    return found


def timed(node: Node, schema: pa.Schema | None) -> pa.Schema | None:
    """A node's schema with its event time as a timestamp."""
    return node.options.event_time.timed(schema) if schema is not None and node.options.event_time else schema


def inputs_of(node: Node, schemas: Schemas) -> dict[str, pa.Schema | None]:
    """Schemas of what a node reads: its inputs, and the dynamic tables that its SQL joins."""
    named = node.component.tables() if isinstance(node.component, Transform) else ()
    return {name: schemas.get(name) for name in dict.fromkeys((*node.inputs, *named))}


def _output(node: Node, inputs: Schemas) -> pa.Schema | None:
    component = node.component
    if isinstance(component, Source):
        return component.output()
    if isinstance(component, Transform):
        return component.output(inputs)
    return None
