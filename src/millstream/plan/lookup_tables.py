"""Dynamic tables in a plan: nodes that no rows flow through. SQL looks up rows in them by name.

A query uses such a table in a function or in a join. In a join it looks like an input but is not one. So a topology finds its tables first,
passes them to every node (`NamesInputs.with_tables`), and removes them from the nodes' inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from millstream.plan.components import ActsAsTable, Component, NamesInputs
from millstream.plan.nodes import AnyNode, TransformNode


@dataclass(frozen=True, slots=True)
class LookupTable:
    """A table's schema, and the component that knows its location."""

    name: str
    key: str
    key_type: pa.DataType
    """`types.UNKNOWN` where only the database has it."""
    columns: pa.Schema
    component: Component = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(self.key, self.key_type), *self.columns])


def tables_of(nodes: tuple[AnyNode, ...]) -> dict[str, LookupTable]:
    return {node.name: node.component.lookup_table(node.name) for node in nodes if isinstance(node.component, ActsAsTable)}


def table_nodes(nodes: tuple[AnyNode, ...]) -> dict[str, TransformNode]:
    """The dynamic tables of a pipeline, by name."""
    return {node.name: node for node in nodes if isinstance(node, TransformNode) and is_table(node)}


def with_tables(nodes: tuple[AnyNode, ...]) -> tuple[AnyNode, ...]:
    """The nodes, each with the pipeline's dynamic tables."""
    tables = tables_of(nodes)
    names = [node.name for node in nodes]
    return tuple(_with_tables(_with_node_names(node, names), tables) if isinstance(node, TransformNode) else node for node in nodes)


def is_table(node: AnyNode) -> bool:
    """Whether the node is a table, in which rows are looked up."""
    return isinstance(node.component, ActsAsTable)


def fills(node: AnyNode) -> bool:
    """Whether the node is a dynamic table that the stream itself writes."""
    return is_table(node) and bool(node.inputs)


def _with_node_names(node: TransformNode, names: list[str]) -> TransformNode:
    """SQL may spell a node's name in another case."""
    if not isinstance(node.component, NamesInputs):
        return node
    component = node.component.with_node_names(names)
    return node if component is node.component else replace(node, component=component, inputs=component.tables())


def _with_tables(node: TransformNode, tables: Mapping[str, LookupTable]) -> TransformNode:
    if not isinstance(node.component, NamesInputs):
        return node
    component = node.component.with_tables(tables)
    named = set(node.component.tables()) & set(tables)
    inputs = tuple(name for name in node.inputs if name not in named)
    return node if component is node.component and inputs == node.inputs else replace(node, component=component, inputs=inputs)
