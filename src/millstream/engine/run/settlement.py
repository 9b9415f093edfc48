"""Settlement: before a query's first epoch, the ledger of every target is compared with the epochs that were committed to it.

If a target lacks epochs, the run stops unless the user has decided: `--redeliver` repeats them for that target where their rows are the
same, and `--accept-target` continues without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.checkpoint.deliveries import Lack
from millstream.checkpoint.evolution import PlanHistory
from millstream.checkpoint.incremental import IncrementalState
from millstream.checkpoint.layout import Checkpoint, QueryCheckpoint
from millstream.engine.epoch.loop import EpochLoop
from millstream.engine.epoch.status import Repetition
from millstream.engine.run.redelivery import Redelivery, state_is_kept
from millstream.errors import Diagnostic, RunError
from millstream.observe.recorder import Recorder
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import AnyNode, TransformNode
from millstream.plan.run_options import RunOptions
from millstream.rules.functions import calls_of


@dataclass(frozen=True)
class Settlement:
    """One query before its start."""

    history: PlanHistory
    loop: EpochLoop
    checkpoint: Checkpoint
    options: RunOptions
    recorder: Recorder

    def settle(self, loop_on: Callable[[QueryCheckpoint, Repetition], EpochLoop]) -> bool:
        """Whether the run may continue; False when the run was stopped during redelivery."""
        lacks = self._find_lacks()
        if not lacks:
            return True
        named = ", ".join(f"`{lack.sink.name}` {lack.named}" for lack in lacks)
        if self.options.redeliver:
            self._require_repeatable(lacks)
            self.recorder.note(f"delivering again: {named}")
            if not self._redeliver(lacks, loop_on):
                return False
            self.recorder.note(f"delivered again: {named}")
            for hole in self.loop.deliveries.accepted_holes(lack.sink.name for lack in lacks):
                self.recorder.warn(f"still missing, accepted by an earlier run: {hole}")
        elif self.options.accept_target:
            self.loop.deliveries.accept(lacks)
            self.recorder.warn(f"accepted as missing in the target: {named}")
        else:
            raise RunError([lack.diagnostic() for lack in lacks])
        return True

    def _find_lacks(self) -> list[Lack]:
        deliveries, ledgers, sinks = self.loop.deliveries, self.loop.ledgers, self.history.sinks()
        deliveries.keep_only(sink.name for sink in sinks)
        return deliveries.find_lacks([sink for sink in sinks if ledgers.answers(sink)], ledgers.epoch_of, ledgers.recall)

    def _redeliver(self, lacks: Sequence[Lack], loop_on: Callable[[QueryCheckpoint, Repetition], EpochLoop]) -> bool:
        redelivery = Redelivery(self.history.plan, self.checkpoint, self.loop.lowering, self._show)
        return redelivery.run({lack.sink.name: lack.epochs for lack in lacks}, loop_on)

    def _show(self) -> None:
        if self.options.watch is not None:
            self.options.watch(self.recorder.snapshot())

    def _require_repeatable(self, lacks: Sequence[Lack]) -> None:
        found = [(lack, reason) for lack in lacks if (reason := next(self._obstacles(lack), ""))]
        if found:
            help_ = "restore the target from a newer copy; or `--accept-target` continues without these epochs"
            message = "sink `{0.sink.name}` lacks {0.named}, and they cannot be delivered again: {1}"
            raise RunError([Diagnostic("MS141", message.format(*each), each[0].sink.span, help=help_) for each in found])

    def _obstacles(self, lack: Lack) -> Iterator[str]:
        plan = self.history.plan
        if plan.maintained and not IncrementalState(self.checkpoint.incremental(plan.name)).holds(lack.epochs):
            yield f"what query `{plan.name}` wrote for them was replaced by a snapshot"
        if plan.has_native_state and not state_is_kept(self.loop.checkpoint, lack.epochs[0]):
            yield f"the state of query `{plan.name}` before epoch {lack.epochs[0]} is no longer kept (`settings.retain_epochs`)"
        yield from (f"`{node.name}` depends on the clock" for node in plan.above if self._waits_for_clock(node))
        yield from (f"dynamic table `{node.name}` would receive old rows" for node in plan.filling)
        yield from (f"`{node.name}` gives other rows each time" for node in plan.nodes if self._varies(node, plan))
        for sink in plan.sinks:
            if sink.component.target_rejects and sink.dead_letter:
                yield f"which rows go from `{sink.name}` to `{sink.dead_letter}` depends on its table, and may differ now"
        for node in plan.sources:
            if not node.component.rereads:
                yield f"source `{node.name}` cannot read committed rows again"
        if gone := self._missing_offsets(lack.epochs):
            yield gone
        if reason := self.history.differs(lack.epochs, lack.sink.name):
            yield reason

    def _waits_for_clock(self, node: AnyNode) -> bool:
        return isinstance(node, TransformNode) and node.waits_for_clock(self.loop.lowering.directory)

    def _varies(self, node: AnyNode, plan: QueryPlan) -> bool:
        lowering = self.loop.lowering
        return lowering.varies(node) or any(used.name in lowering.varying for used in calls_of(node, plan.functions))

    def _missing_offsets(self, epochs: range) -> str:
        """Which offsets are no longer in the checkpoint; empty: none. An epoch begins where the previous one ends."""
        kept = {int(name) for name in self.loop.checkpoint.storage.names("offsets") if name.isdigit()}
        missing = sorted(set(range(max(0, epochs[0] - 1), epochs.stop)) - kept)
        return f"the checkpoint no longer holds the offsets of epoch {missing[0]} (`settings.retain_epochs`)" if missing else ""
