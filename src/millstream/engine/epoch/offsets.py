"""The offsets of an epoch in each source, and the rows that were lost before the epoch could read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.checkpoint.layout import OffsetEntry, QueryCheckpoint
from millstream.engine.lowering.nodes import Lowering
from millstream.plan.components import LosesRows
from millstream.plan.cutting import QueryPlan


def offsets_of(plan: QueryPlan, entry: OffsetEntry) -> dict[str, Any]:
    """The end offset of an epoch in each source."""
    return {node.name: offset for node, offset in zip(plan.sources, entry.offsets, strict=False) if offset is not None}


def begin_of(plan: QueryPlan, checkpoint: QueryCheckpoint, number: int) -> dict[str, Any]:
    """The start offset of an epoch in each source; empty for the first epoch."""
    return offsets_of(plan, checkpoint.entry(number - 1)) if number > 0 else {}


def lost_rows(plan: QueryPlan, lowering: Lowering, find_begin: Callable[[], Mapping[str, Any]], end: Mapping[str, Any]) -> dict[str, int]:
    """Source → rows that no longer exist when the epoch reads them. Only sources that continue without lost rows are asked; sources
    without a loss are left out.
    """
    runs = {node.name: lowering.source(node) for node in plan.sources}
    losing = {name: run for name, run in runs.items() if isinstance(run, LosesRows) and run.may_lose}
    begin = find_begin() if losing else {}
    found = {name: run.count_lost(lowering.spark, begin[name], end[name]) for name, run in losing.items() if name in begin and name in end}
    return {name: count for name, count in found.items() if count}
