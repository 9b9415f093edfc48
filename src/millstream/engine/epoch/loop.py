"""One epoch, as docs/exactly-once.md describes it.

1. Every sink stages its rows: written, not visible.
2. When all sinks have staged, each commits: the rows become visible together with the epoch's number and digest, in the target system.
3. The call returns, and Spark marks the epoch as done.

After a crash Spark calls again for the same epoch. A sink that already holds it (its ledger says so, with the same digest of Spark's offset
entry) is skipped. A ledger with another digest means that checkpoint and target come from different histories: nothing is written then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import median

from pyspark.sql import DataFrame

from millstream.checkpoint.deliveries import Deliveries
from millstream.checkpoint.layout import QueryCheckpoint
from millstream.engine.epoch.changed_inputs import refuse_changed
from millstream.engine.epoch.counts import count_dead_letters, passed_rows, record_lookups
from millstream.engine.epoch.durability import Durability
from millstream.engine.epoch.frames import EpochFrames
from millstream.engine.epoch.ledgers import Ledgers
from millstream.engine.epoch.offsets import begin_of, lost_rows, offsets_of
from millstream.engine.epoch.samples import Samples
from millstream.engine.epoch.staged import StagedEpoch, StagedSink, commit_group
from millstream.engine.epoch.status import FinishedEpoch, LoopStatus, PlannedEpoch, QueryHandle, Repetition
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.lowering.functions import register
from millstream.engine.lowering.nodes import Lowering
from millstream.engine.time.operators import Operators
from millstream.engine.time.watermarks import Watermarks
from millstream.observe import events
from millstream.observe.facts import EpochFacts, WatermarkFacts
from millstream.observe.gate import Gate
from millstream.observe.recorder import Recorder
from millstream.plan.components import BeginsEpochs, EndsAtOffset, Epoch, FillsTable
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import SinkNode


class StopRequested(Exception):  # noqa: N818 — not an error: the next epoch is refused because the run is stopping
    """Raised instead of starting another epoch."""


@dataclass
class EpochLoop:
    """The function that `foreachBatch` calls. One instance serves a query from one start to the next restart."""

    plan_for: Callable[[int], QueryPlan]
    """An epoch that was planned with an older plan is finished with that plan."""
    checkpoint: QueryCheckpoint
    lowering: Lowering
    recorder: Recorder
    deliveries: Deliveries
    stopping: Callable[[], bool]
    gate: Gate
    bounded: bool = False
    """Whether this loop detects the end of the input by its offsets."""
    repetition: Repetition = Repetition()
    watermarks: Watermarks | None = None
    """For queries that use event time."""
    maintenance: Maintenance | None = None
    """For queries whose root is incremental."""
    query: QueryHandle = field(default_factory=QueryHandle)
    status: LoopStatus = field(default_factory=LoopStatus)
    ledgers: Ledgers = field(init=False)
    durability: Durability = field(init=False)
    samples: Samples = field(init=False)

    def __post_init__(self) -> None:
        self.samples = Samples(self.lowering, self.query)
        self.durability = Durability(self.checkpoint.storage)
        self.ledgers = Ledgers(self.checkpoint, self.lowering)

    def __call__(self, frame: DataFrame, number: int) -> None:
        with self.gate.passed(self._is_over) as begins:
            if not begins or self._is_over() or (self.status.last_epoch is not None and number > self.status.last_epoch):
                self.status.refused = True
                raise StopRequested
            self._run_recorded(frame, number)

    def _is_over(self) -> bool:
        return self.stopping() or self.status.abandoned

    def _run_recorded(self, frame: DataFrame, number: int) -> None:
        self.status.committed = self.status.finished
        try:
            self._run(frame, number)
        except BaseException as error:
            self.status.failure = error
            raise

    def _run(self, frame: DataFrame, number: int) -> None:
        started, epoch = time.monotonic(), self._load_plan(number)
        self.status.planned_at = epoch.planned_at
        self.recorder.publish(events.EpochPlanned(query=self.checkpoint.name, epoch=number, planned_at=epoch.planned_at))
        self._use_functions(epoch.plan, frame)
        self._require_same_inputs(epoch)
        lost = self._lost_rows(epoch)
        self.durability.sync_plan(number, epoch.entry)
        if self.lowering.taps is not None:
            self.lowering.taps.take()  # what a failed attempt has left
        frames = self._frames(epoch, frame)
        try:
            self._fill_tables(epoch, frames)
            staged = self._stage(epoch, frames)
            with staged.aborting():
                rejected = frames.count_rejects() if staged.sinks else {}
                late = frames.late.counts() if frames.late else {}
                watermark = self._advance_watermark(frames, epoch) if self.watermarks else None
                self.durability.sync_state()
                self.lowering.checkpoint.require_lease()
                if self.maintenance is not None:
                    self.maintenance.write(number, epoch.entry.digest)
                    self.lowering.checkpoint.require_lease()
            self._commit(staged)
            took = time.monotonic() - started
            self._report_traced(number)
            if staged.sinks:  # else the samples would be all that is read
                self._sample(epoch, frames, took, staged)
        finally:
            frames.release()
        facts = EpochFacts(epoch.plan.name, number, time.monotonic() - started, {}, rejected, (), (), late, watermark, lost)
        self._finish(epoch, frames, staged, facts)
        if self.maintenance is not None:
            self.recorder.set(epoch.plan.root.name, state=self.maintenance.facts(number))
            if warning := self.maintenance.finish(number, epoch.entry.digest, epoch.entry.watermark_ms):
                self.recorder.warn(warning)

    def _load_plan(self, number: int) -> PlannedEpoch:
        accepts = self.repetition.accepts and number == self.repetition.epoch
        return PlannedEpoch(number, self.checkpoint.entry(number), self.plan_for(number), accepts)

    def _use_functions(self, plan: QueryPlan, frame: DataFrame) -> None:
        """Finish an epoch with the functions that it was planned with."""
        if plan.functions != self.lowering.functions:
            register(frame.sparkSession, plan.functions, self.lowering.directory, self.lowering.hidden)
            self.lowering = self.ledgers.lowering = self.samples.lowering = replace(self.lowering, functions=plan.functions)

    def _require_same_inputs(self, epoch: PlannedEpoch) -> None:
        """Before an epoch is read again, check that its inputs have not changed."""
        if not self.repetition.compares(epoch.number):
            return
        plan, held, begun = epoch.plan, [], False
        for sink in plan.sinks:
            self.status.current_node, run = sink.name, self.lowering.sink(sink)
            own = self._epoch_of(sink, epoch)
            held.append(self._needs_nothing(sink, own))
            begun = begun or (isinstance(run, BeginsEpochs) and run.has_begun(own))
        self.status.current_node = ""
        if all(held) and not plan.stateful and not plan.filling:
            return
        seen = any(held) or begun or bool(plan.filling) or self.repetition.redelivers or self.checkpoint.has_staged(epoch.number)
        changed = refuse_changed(plan, self.lowering, self.checkpoint, epoch.number, epoch.entry, seen=seen)
        if changed:
            files = ", ".join(changed)
            self.recorder.warn(
                f"query `{plan.name}`: no sink holds any of epoch {epoch.number}, so it is read with its files as they are now: {files}"
            )

    def _epoch_of(self, sink: SinkNode, epoch: PlannedEpoch) -> Epoch:
        own = self.ledgers.epoch_of(sink, epoch.number, epoch.entry.digest, epoch.clock)
        return replace(own, planned_before=self.repetition.redelivers or epoch.number == self.repetition.epoch)

    def _needs_nothing(self, sink: SinkNode, epoch: Epoch) -> bool:
        """Whether the target already holds the epoch, or does not lack it in a redelivery."""
        return self.repetition.skips(sink.name, epoch.number) or self.ledgers.holds(sink, epoch)

    def _lost_rows(self, epoch: PlannedEpoch) -> dict[str, int]:
        """Source → rows of this epoch that no longer exist, for sources that may continue without them."""
        begin = self.status.finished.offsets if self.status.finished else None
        return lost_rows(
            epoch.plan,
            self.lowering,
            lambda: begin if begin is not None else begin_of(epoch.plan, self.checkpoint, epoch.number),
            offsets_of(epoch.plan, epoch.entry),
        )

    def _frames(self, epoch: PlannedEpoch, frame: DataFrame) -> EpochFrames:
        operators = self._operators if self.watermarks else None
        self.status.watched = self.recorder.watches.due(epoch.plan.name)
        watched = frozenset(each.node for each in self.status.watched)
        return EpochFrames(
            epoch.plan, frame, self.lowering, epoch.number, epoch.entry, epoch.clock, operators, epoch.accepts, self.maintenance, watched
        )

    def _operators(self) -> Operators:
        return Operators(self.query.get())

    def _fill_tables(self, epoch: PlannedEpoch, frames: EpochFrames) -> None:
        """Write the epoch's rows to the dynamic tables before the sinks run, so that lookups see them. A repeated epoch writes the same
        rows.
        """
        for node in epoch.plan.filling:
            self.status.current_node, run = node.name, self.lowering.transform(node)
            assert isinstance(run, FillsTable)
            self.recorder.add(node.name, "transform", rows_out=run.fill(frames.for_table(node)))
        self.status.current_node = ""

    def _stage(self, epoch: PlannedEpoch, frames: EpochFrames) -> StagedEpoch:
        plan, staged = epoch.plan, StagedEpoch()
        with staged.aborting():
            for sink in plan.sinks:
                self.status.current_node = sink.name
                own = self._epoch_of(sink, epoch)
                if self._needs_nothing(sink, own):
                    staged.skipped.append(sink.name)
                    continue
                if plan.late_rows_of(sink) and not staged.sinks:
                    frames.run()
                before, rows, run = self.ledgers.entries[sink.name], frames.for_sink(sink), self.lowering.sink(sink)
                own = replace(own, repeatable=frames.repeatable(sink), before=before, accepts=epoch.accepts)
                begun = time.monotonic()
                staged.sinks.append(StagedSink(sink, run, run.stage(rows, own), own))
                self._publish_staged(staged.sinks[-1], time.monotonic() - begun)
                frames.count_reads(sink, staged.sinks[-1].staged.reads)
            if not staged.sinks and plan.stateful:
                frames.run()
            if frames.late:
                self.status.current_node = plan.root.name
                frames.late.refuse()
        return staged

    def _report_traced(self, number: int) -> None:
        """Pass on when traced records have passed the nodes. A failure here does not fail an epoch that is committed."""
        if self.lowering.taps is not None:
            with suppress(Exception):
                self.recorder.traced.put(self.checkpoint.name, number, self.lowering.taps.take())

    def _sample(self, epoch: PlannedEpoch, frames: EpochFrames, took: float, staged: StagedEpoch) -> None:
        """Publish rows of the nodes that somebody watches. A failure here is nobody's but the watcher's. To hold rows costs as well: the
        time by which the epoch `took` longer than usual.
        """
        if not self.status.watched:
            self.status.usual.append(took)
            return
        holding = max(0.0, took - median(self.status.usual)) if self.status.usual else 0.0
        has_read_again = False
        for watched in self.status.watched:
            if staged.had_no_rows(watched.node):  # the next epoch may have some: the wish keeps its turn
                continue
            again = self.samples.reads_again(watched.node, epoch.plan, frames)
            if again and has_read_again:  # one per epoch: the next wish has its turn in the next
                continue
            begun, has_read_again = time.monotonic(), has_read_again or again
            with suppress(Exception):
                found = self.samples.take(watched, epoch, frames)
                if found is not None:
                    self.recorder.publish(found)
            spent = time.monotonic() - begun
            self.recorder.watches.note(watched, spent if again else spent + holding)

    def _publish_staged(self, sink: StagedSink, seconds: float) -> None:
        rows, number = sink.staged.rows, sink.epoch.number
        self.recorder.publish(events.EpochStaged(query=self.checkpoint.name, epoch=number, sink=sink.node.name, rows=rows, seconds=seconds))

    def _advance_watermark(self, frames: EpochFrames, epoch: PlannedEpoch) -> WatermarkFacts | None:
        """Track the event time of each input. If one is idle and others are not, advance Spark's watermark without it."""
        assert self.watermarks is not None and frames.operators is not None
        tracker = self.query.get().streamingQuery().watermarkTracker()
        seen = frames.operators.saw()
        self.watermarks.refuse(seen, epoch.entry.time_ms)
        active = self.watermarks.observe(seen)
        target = self.watermarks.target(epoch.planned_at, active)
        if target is not None and target > int(tracker.currentWatermark()):
            tracker.setWatermark(target)
        self.watermarks.end_epoch(active)
        return self.watermarks.facts(int(tracker.currentWatermark()))

    def _commit(self, staged: StagedEpoch) -> None:
        for group in staged.groups():
            self.status.current_node = group[0].node.name
            begun = time.monotonic()
            commit_group(group)
            for sink in group:
                self.ledgers.record_commit(sink.node, sink.epoch)
            names, seconds = tuple(sink.node.name for sink in group), time.monotonic() - begun
            self.recorder.publish(
                events.EpochCommitted(query=self.checkpoint.name, epoch=group[0].epoch.number, sinks=names, seconds=seconds)
            )
        self.status.current_node = ""

    def _finish(self, epoch: PlannedEpoch, frames: EpochFrames, staged: StagedEpoch, facts: EpochFacts) -> None:
        """All sinks hold the epoch: record its facts."""
        plan, rows = epoch.plan, staged.rows
        if not self.repetition.redelivers:
            self.deliveries.record(plan.sinks, epoch.number)
        skipped = tuple(staged.skipped) if not self.repetition.redelivers else ()  # during redelivery the other sinks are not checked
        self.status.planned_at = None
        self.status.scans[epoch.number] = None if frames.read_in_part else frames.scans
        self.status.finished = FinishedEpoch(epoch.number, offsets_of(plan, epoch.entry))
        rejected, committed = {**facts.rejected, **count_dead_letters(plan, rows)}, tuple(sink.node.name for sink in staged.sinks)
        written = replace(facts, rows_out=rows, bytes_out=staged.bytes, rejected=rejected, committed=committed, skipped=skipped)
        self.recorder.epoch(written)
        for name, count in passed_rows(plan, rows, frames.collapsed).items():
            self.recorder.add(name, "transform", rows_out=count)
        record_lookups(plan, self.lowering, self.recorder)
        for name, counts in self.lowering.counters.take().items() if self.lowering.counters else ():
            self.recorder.count(name, counts)
        if epoch.entry.flushes or (self.bounded and self._is_exhausted(epoch)):
            self.status.last_epoch = epoch.number

    def _is_exhausted(self, epoch: PlannedEpoch) -> bool:
        """Whether every source ends at or before the epoch's offsets."""
        for node, offset in zip(epoch.plan.sources, epoch.entry.offsets, strict=False):
            run = self.lowering.source(node)
            if offset is None or not isinstance(run, EndsAtOffset) or not run.is_exhausted(offset):
                return False
        return True
