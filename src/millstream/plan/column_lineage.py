"""Which columns of which sources the columns of each sink are made of, through all transforms between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millstream.plan.components import Origin
from millstream.plan.components.lineage import How
from millstream.plan.nodes import SinkNode, SourceNode, TransformNode
from millstream.plan.schemas import Schemas, inputs_of
from millstream.plan.topology import Topology

_ORDER: tuple[How, ...] = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


@dataclass(frozen=True, slots=True, order=True)
class SourceColumn:
    """A column of a source, and the most that happens to it on the way."""

    source: str
    column: str
    how: How


Columns = Mapping[str, frozenset[SourceColumn]]
"""Column → what it is made of. Columns of which that is not known are left out."""


def column_lineage(topology: Topology, schemas: Schemas) -> dict[str, Columns]:
    """Sink → its columns."""
    found: dict[str, Columns] = {}
    for node in topology.ordered():
        if isinstance(node, SourceNode):
            schema = schemas.get(node.name)
            names = schema.names if schema is not None else []
            found[node.name] = {name: frozenset({SourceColumn(node.name, name, "IDENTITY")}) for name in names}
        elif isinstance(node, TransformNode | SinkNode) and node.inputs:
            origins = node.component.origins(inputs_of(node, schemas)) or {}
            traced = {name: _sources(parts, found) for name, parts in origins.items()}
            found[node.name] = {name: sources for name, sources in traced.items() if sources is not None}
    return {node.name: found[node.name] for node in topology.nodes if isinstance(node, SinkNode) and node.name in found}


def _sources(origins: tuple[Origin, ...], above: Mapping[str, Columns]) -> frozenset[SourceColumn] | None:
    """None if one of them cannot be followed to its source."""
    found: dict[tuple[str, str], How] = {}
    for origin in origins:
        sources = above.get(origin.input, {}).get(origin.column)
        if sources is None:
            return None
        for each in sources:
            place = each.source, each.column
            found[place] = max(found.get(place, "IDENTITY"), each.how, origin.how, key=_ORDER.index)
    return frozenset(SourceColumn(source, column, how) for (source, column), how in found.items())
