"""Before an epoch is repeated: is what it reads still what it was? Only the source can tell; what it says stops the run."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.engine.checkpoint import OffsetEntry, QueryCheckpoint
from millstream.engine.losses import begin_of, offsets_of
from millstream.engine.lowering import Lowering
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import ChangedInput, Source
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node

_SHOWN = 5


def refuse_changed(
    plan: QueryPlan, lowering: Lowering, checkpoint: QueryCheckpoint, number: int, entry: OffsetEntry, *, seen: bool
) -> list[str]:
    """Raise when a source gives other rows for the epoch than it gave when that was planned. An epoch of which nobody has `seen` anything
    may be read with files as they are now; those are returned, to be told. One that is gone would be lost, and is refused all the same.
    """
    begin, end = begin_of(plan, checkpoint, number), offsets_of(plan, entry)
    accepted: list[str] = []
    for place, node in enumerate(plan.sources):
        assert isinstance(node.component, Source)
        if node.name not in end:
            continue
        notes = checkpoint.storage.child(f"sources/{place}")
        found = node.component.changed(lowering.spark, notes, begin.get(node.name), end[node.name], lowering.context(node))
        if found and (seen or any(change.gone for change in found)):
            raise RunError(_refusal(node, number, found))
        accepted += _shown(found)
    return accepted


def _refusal(node: Node, number: int, found: Sequence[ChangedInput]) -> Diagnostic:
    files = "1 file" if len(found) == 1 else f"{len(found)} files"
    message = f"epoch {number} is to be read again, and {files} of `{node.name}` changed since it was planned"
    help_ = "put them back as they were; or `--accept-replay` finishes the epoch with what is there now"
    return Diagnostic("MS143", message, node.span, detail="\n".join(_shown(found)), help=help_)


def _shown(found: Sequence[ChangedInput]) -> list[str]:
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return [*map(str, found[:_SHOWN]), *more]
