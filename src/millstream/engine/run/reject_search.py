"""Finds the row that made a query fail. It searches after the failure, because tracking rows beforehand would slow down every row.

Spark's parsers stop at the first row that does not fit. That is the fastest way to read, but the failure does not say where the row is. The
epoch's offsets are in the checkpoint, so the source reads that range again to find the row.
"""

from __future__ import annotations

from contextlib import suppress

from millstream.checkpoint.layout import QueryCheckpoint
from millstream.engine.epoch.offsets import begin_of, offsets_of
from millstream.engine.failures import text_of
from millstream.engine.lowering.nodes import Lowering
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import FindsRejects
from millstream.plan.cutting import QueryPlan


def find_reject(error: BaseException, plan: QueryPlan, checkpoint: QueryCheckpoint, lowering: Lowering) -> RunError | None:
    """The row that stopped a query, if a source recognises the failure and finds the row."""
    text = text_of(error)
    recognised = [(node, failure) for node in plan.sources if (failure := node.component.recognise(text)) and failure.code == "MS062"]
    with suppress(Exception):  # the original failure is reported in any case
        number = checkpoint.last_committed() + 1
        begin, end = begin_of(plan, checkpoint, number), offsets_of(plan, checkpoint.entry(number))
        for node, failure in recognised:
            run = lowering.source(node)
            found = run.find_reject(lowering.spark, begin.get(node.name), end.get(node.name)) if isinstance(run, FindsRejects) else ""
            if found:
                place = node.place("schema") or node.span
                return RunError(Diagnostic("MS062", f"`{node.name}`: {found}", place, help=failure.help, node=node.name))
    return None
