"""Binds the tables that a query names to frames, in the plan that Spark has parsed.

The text reaches the parser as the user wrote it, so positions in Spark's messages are positions in the user's text. A table that a WITH
clause defines is no longer a relation after the definitions are inlined: it wins over a node of the same name. A node's input has two
aliases in the plan: the inner one marks where the query ends (`plans.input_name`), the outer one is the name that columns are qualified by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from millstream.sql.catalyst.bridge import Bridge, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Input(NamedTuple):
    """The rows of a table."""

    frame: DataFrame
    alias: str
    """The name that marks the frame in the analysed plan."""


def parse(bridge: Bridge, text: str) -> Plan:
    """The plan of a query with names that are not resolved, and without definitions."""
    return bridge.with_inlined_definitions(bridge.parse(text))


def bind(bridge: Bridge, plan: Plan, inputs: Mapping[str, Input]) -> Plan:
    """A parsed plan whose tables are the frames of these names, also in subqueries. Spark looks other tables up in its catalog."""
    pairs = [(relation, _find(".".join(parts), inputs), parts) for relation, parts in bridge.relations(plan)]
    return bridge.replaced_everywhere(plan, [(relation, _aliased(bridge, found, parts)) for relation, found, parts in pairs if found])


def _find(name: str, inputs: Mapping[str, Input]) -> Input | None:
    """The input of a name; if only the case differs, the only one."""
    similar = [found for each, found in inputs.items() if each.lower() == name.lower()]
    return inputs.get(name) or (similar[0] if len(similar) == 1 else None)


def _aliased(bridge: Bridge, table: Input, parts: list[str]) -> Plan:
    """A frame's plan, whose columns can be called `raw.orders.id`, `orders.id` and `id`."""
    return bridge.named_by(parts, bridge.named_by([table.alias], bridge.analysed_as_is(table.frame)))
