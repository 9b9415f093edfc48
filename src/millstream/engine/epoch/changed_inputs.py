"""Before an epoch is repeated, each source checks that its input has not changed since the epoch was planned. A change stops the run."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.checkpoint.layout import OffsetEntry, QueryCheckpoint
from millstream.engine.epoch.offsets import begin_of, offsets_of
from millstream.engine.lowering.nodes import Lowering
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import ChangedInput, DetectsChanges
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import SourceNode

_SHOWN = 5


def refuse_changed(
    plan: QueryPlan, lowering: Lowering, checkpoint: QueryCheckpoint, number: int, entry: OffsetEntry, *, seen: bool
) -> list[str]:
    """Raise when a source would return other rows for the epoch than when it was planned. If no sink has `seen` the epoch, changed files
    are accepted and returned, so that the caller can report them. A missing file is always refused, because its rows would be lost.
    """
    begin, end = begin_of(plan, checkpoint, number), offsets_of(plan, entry)
    accepted: list[str] = []
    for place, node in enumerate(plan.sources):
        run = lowering.source(node)
        if node.name not in end or not isinstance(run, DetectsChanges):
            continue
        log = checkpoint.storage.child(f"sources/{place}")
        found = run.find_changes(lowering.spark, log, begin.get(node.name), end[node.name])
        if found and (seen or any(change.gone for change in found)):
            raise RunError(_refusal(node, number, found))
        accepted += _describe(found)
    return accepted


def _refusal(node: SourceNode, number: int, found: Sequence[ChangedInput]) -> Diagnostic:
    files = "1 file" if len(found) == 1 else f"{len(found)} files"
    message = f"epoch {number} must be read again, but {files} of `{node.name}` changed since it was planned"
    help_ = "restore the files; or `--accept-replay` finishes the epoch with the files as they are now"
    return Diagnostic("MS143", message, node.span, detail="\n".join(_describe(found)), help=help_)


def _describe(found: Sequence[ChangedInput]) -> list[str]:
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return [*map(str, found[:_SHOWN]), *more]
