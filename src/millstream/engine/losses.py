"""Rows that a source had and lost before they were read, counted just before an epoch reads what is left.

Only the source can tell, and only from offsets: where the epoch begins, and what is there now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.engine.checkpoint import OffsetEntry, QueryCheckpoint
from millstream.engine.lowering import Lowering
from millstream.plan.components import Source
from millstream.plan.cutting import QueryPlan


def offsets_of(plan: QueryPlan, entry: OffsetEntry) -> dict[str, Any]:
    """How far an epoch comes in each source."""
    return {node.name: offset for node, offset in zip(plan.sources, entry.offsets, strict=False) if offset is not None}


def begin_of(plan: QueryPlan, checkpoint: QueryCheckpoint, number: int) -> dict[str, Any]:
    """Where an epoch begins in each source; nothing for the first one, which begins with what is there."""
    return offsets_of(plan, checkpoint.entry(number - 1)) if number > 0 else {}


def lost_rows(plan: QueryPlan, lowering: Lowering, begin: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, int]:
    """Source → rows that are gone; only where there are any."""
    found = {}
    for node in plan.sources:
        if isinstance(node.component, Source) and node.component.may_lose and node.name in begin and node.name in end:
            found[node.name] = node.component.lost(lowering.spark, begin[node.name], end[node.name], lowering.context(node))
    return {name: count for name, count in found.items() if count}
