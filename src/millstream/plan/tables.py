"""Dynamic tables as a plan sees them: nodes that no rows flow through, which SQL looks rows up in by name.

A query names such a table in a function or joins it. The second looks like one more input, and is none: so when a topology is made, its
tables are found first, and every node is told of them (`Transform.bound`) and loses them as inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from millstream.plan.components import Transform
from millstream.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table's shape, and the component that knows where it is."""

    name: str
    key: str
    key_type: pa.DataType
    """`types.UNKNOWN` where only the database can tell."""
    columns: pa.Schema
    component: Any = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(self.key, self.key_type), *self.columns])


def tables_of(nodes: tuple[Node, ...]) -> dict[str, LookupTable]:
    found = {node.name: node.component.lookup_table(node.name) for node in nodes if isinstance(node.component, Transform)}
    return {name: table for name, table in found.items() if table is not None}


def bound(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes, each told which dynamic tables there are."""
    tables = tables_of(nodes)
    names = [node.name for node in nodes]
    return tuple(_bound(_spelt(node, names), tables) if isinstance(node.component, Transform) else node for node in nodes)


def _spelt(node: Node, names: list[str]) -> Node:
    """SQL may write the name of a node in another case, as it may in a batch."""
    assert isinstance(node.component, Transform)
    component = node.component.spelt(names)
    return node if component is node.component else replace(node, component=component, inputs=component.tables())


def is_table(node: Node) -> bool:
    """Whether rows are looked up in the node, and do not flow through it."""
    return isinstance(node.component, Transform) and node.component.lookup_table(node.name) is not None


def fills(node: Node) -> bool:
    """Whether the node is a dynamic table that the stream itself writes."""
    return is_table(node) and bool(node.inputs)


def _bound(node: Node, tables: Mapping[str, LookupTable]) -> Node:
    assert isinstance(node.component, Transform)
    component = node.component.bound(tables)
    named = set(node.component.tables()) & set(tables)
    inputs = tuple(name for name in node.inputs if name not in named)
    return node if component is node.component and inputs == node.inputs else replace(node, component=component, inputs=inputs)
