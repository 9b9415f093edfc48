"""Before a query's first epoch: every target is asked what it holds, and that is compared with what was committed to it.

Epochs that a target lacks stop the run, unless the user has said what to do: `--redeliver` repeats them for that target, as far as they
come out the same, and `--accept-target` goes on without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.engine.checkpoint import Checkpoint, QueryCheckpoint
from millstream.engine.deliveries import Lack
from millstream.engine.epochs import EpochLoop
from millstream.engine.evolution import PlanHistory
from millstream.engine.redelivery import Redelivery, state_is_kept
from millstream.errors import Diagnostic, RunError
from millstream.observe.facts import Recorder
from millstream.plan.components import Sink, Source, Transform
from millstream.plan.cutting import QueryPlan
from millstream.plan.function_rules import calls_of
from millstream.plan.nodes import Node
from millstream.plan.running import RunOptions


@dataclass(frozen=True)
class Settlement:
    """One query, about to start."""

    history: PlanHistory
    loop: EpochLoop
    checkpoint: Checkpoint
    options: RunOptions
    recorder: Recorder

    def settle(self, loop_on: Callable[[QueryCheckpoint], EpochLoop]) -> bool:
        """Whether the run may go on; False when a stop came while epochs were delivered again."""
        lacks = self._lacking()
        if not lacks:
            return True
        named = ", ".join(f"`{lack.sink.name}` {lack.named}" for lack in lacks)
        if self.options.redeliver:
            self._require_repeatable(lacks)
            self.recorder.note(f"delivering again: {named}")
            if not self._redeliver(lacks, loop_on):
                return False
            self.recorder.note(f"delivered again: {named}")
            for hole in self.loop.deliveries.accepted(lack.sink.name for lack in lacks):
                self.recorder.warn(f"still missing, since an earlier run has accepted that: {hole}")
        elif self.options.accept_target:
            self.loop.deliveries.accept(lacks)
            self.recorder.warn(f"accepted as missing in the target: {named}")
        else:
            raise RunError([lack.diagnostic() for lack in lacks])
        return True

    def _lacking(self) -> list[Lack]:
        deliveries, sinks = self.loop.deliveries, self.history.sinks()
        deliveries.keep_only(sink.name for sink in sinks)
        return deliveries.lacking([sink for sink in sinks if self.loop.answers(sink)], self.loop.epoch_of, self.loop.recall)

    def _redeliver(self, lacks: Sequence[Lack], loop_on: Callable[[QueryCheckpoint], EpochLoop]) -> bool:
        redelivery = Redelivery(self.history.plan, self.checkpoint, self.loop.lowering, self._show)
        return redelivery.run({lack.sink.name: lack.epochs for lack in lacks}, loop_on)

    def _show(self) -> None:
        if self.options.watch is not None:
            self.options.watch(self.recorder.snapshot())

    def _require_repeatable(self, lacks: Sequence[Lack]) -> None:
        found = [(lack, reason) for lack in lacks if (reason := next(self._obstacles(lack), ""))]
        if found:
            help_ = "restore the target from a newer copy; or `--accept-target` goes on without these epochs"
            message = "sink `{0.sink.name}` lacks {0.named}, and they cannot be delivered again: {1}"
            raise RunError([Diagnostic("MS141", message.format(*each), each[0].sink.span, help=help_) for each in found])

    def _obstacles(self, lack: Lack) -> Iterator[str]:
        plan = self.history.plan
        if plan.stateful and not state_is_kept(self.loop.checkpoint, lack.epochs[0]):
            yield f"the state of query `{plan.name}` before epoch {lack.epochs[0]} is no longer kept (`settings.retain_epochs`)"
        yield from (f"`{node.name}` goes by the clock" for node in plan.above if self._ticks(node))
        yield from (f"dynamic table `{node.name}` would be filled with old rows" for node in plan.filling)
        yield from (f"`{node.name}` gives other rows each time" for node in plan.nodes if self._varies(node, plan))
        for sink in plan.sinks:
            if isinstance(sink.component, Sink) and sink.component.judges_by_target and sink.dead_letter:
                yield f"which rows go from `{sink.name}` to `{sink.dead_letter}` depends on its table, and may differ now"
        for node in plan.sources:
            if isinstance(node.component, Source) and not node.component.rereads:
                yield f"source `{node.name}` does not keep what is committed"
        if gone := self._gone(lack.epochs):
            yield gone
        if reason := self.history.differs(lack.epochs, lack.sink.name):
            yield reason

    def _ticks(self, node: Node) -> bool:
        return isinstance(node.component, Transform) and node.component.ticks(self.loop.lowering.directory)

    def _varies(self, node: Node, plan: QueryPlan) -> bool:
        lowering = self.loop.lowering
        return lowering.varies(node) or any(used.name in lowering.varying for used in calls_of(node, plan.functions))

    def _gone(self, epochs: range) -> str:
        """Which offsets are no longer there; empty: none. An epoch begins where the one before ends."""
        kept = {int(name) for name in self.loop.checkpoint.storage.names("offsets") if name.isdigit()}
        missing = sorted(set(range(max(0, epochs[0] - 1), epochs.stop)) - kept)
        return f"the checkpoint no longer holds the offsets of epoch {missing[0]} (`settings.retain_epochs`)" if missing else ""
