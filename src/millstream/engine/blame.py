"""Which row was it? Asked once a query has failed, because knowing it beforehand costs every row something.

Sources let Spark's parsers stop at the first row that does not fit: that is the fastest way to read, and the failure says nothing about
where the row stands. The epoch's offsets are in the checkpoint, so the source reads that stretch once more, this time to find it.
"""

from __future__ import annotations

from contextlib import suppress

from millstream.engine.checkpoint import QueryCheckpoint
from millstream.engine.failures import text_of
from millstream.engine.losses import begin_of, offsets_of
from millstream.engine.lowering import Lowering
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Source
from millstream.plan.cutting import QueryPlan

_MALFORMED = ("MALFORMED_RECORD_IN_PARSING", "MALFORMED_CSV_RECORD", "Malformed records are detected")
_HELP = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"


def bad_row(error: BaseException, plan: QueryPlan, checkpoint: QueryCheckpoint, lowering: Lowering) -> RunError | None:
    """The row that stopped a query, where a source finds it."""
    if not any(mark in text_of(error) for mark in _MALFORMED):
        return None
    with suppress(Exception):  # the failure itself is told in any case
        number = checkpoint.committed() + 1
        begin, end = begin_of(plan, checkpoint, number), offsets_of(plan, checkpoint.entry(number))
        for node in plan.sources:
            assert isinstance(node.component, Source)
            found = node.component.find_bad(lowering.spark, begin.get(node.name), end.get(node.name), lowering.context(node))
            if found:
                return RunError(Diagnostic("MS062", f"`{node.name}`: {found}", node.place("schema") or node.span, help=_HELP))
    return None
