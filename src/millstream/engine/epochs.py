"""One epoch: every sink stages its rows; when all are staged, every sink commits them together with the epoch's number.

Spark calls this once per micro-batch and, after a crash, again for the same one. A sink that already holds the epoch (its ledger says
so, with the same digest of Spark's offset entry) is skipped. A ledger with another digest means that checkpoint and target come
from different histories: nothing is written then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame

from millstream.engine.checkpoint import OffsetEntry, QueryCheckpoint
from millstream.engine.deliveries import Deliveries
from millstream.engine.durability import Durability
from millstream.engine.frames import EpochFrames
from millstream.engine.functions import register
from millstream.engine.inputs import refuse_changed
from millstream.engine.keptledger import KeptLedger
from millstream.engine.losses import begin_of, lost_rows, offsets_of
from millstream.engine.lowering import Lowering
from millstream.engine.operators import Operators
from millstream.engine.watermarks import Watermarks
from millstream.errors import Diagnostic, RunError
from millstream.observe.facts import EpochFacts, Recorder, WatermarkFacts
from millstream.plan.components import Epoch, LedgerEntry, Sink, Source, Staged, Transform
from millstream.plan.cutting import QueryPlan
from millstream.plan.nodes import Node

_START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Finished:
    """An epoch that is done, and how far it has come in each source."""

    number: int
    offsets: Mapping[str, Any]


@dataclass
class EpochLoop:
    """What `foreachBatch` calls. One instance serves a query from start to restart."""

    plan_for: Callable[[int], QueryPlan]
    """An epoch that was planned with an older plan is finished with it."""
    checkpoint: QueryCheckpoint
    lowering: Lowering
    recorder: Recorder
    deliveries: Deliveries
    stopping: Callable[[], bool]
    bounded: bool = False
    """Whether the end of the input is found here, by the offsets."""
    ledgers: dict[str, LedgerEntry | None] = field(default_factory=dict)
    repeated: int = -1
    """The epoch that an earlier start has planned and not finished."""
    accepts: bool = False
    """Whether that one may have other rows than it had."""
    redelivers: Mapping[str, range] | None = None
    """While epochs are delivered again: sink → those that it lacks. Other sinks receive nothing."""
    failure: BaseException | None = None
    failed_node: str = ""
    planned_at: float | None = None
    """When the epoch in progress was planned, in seconds of the clock; None between epochs."""
    refused: bool = False
    """Whether an epoch was turned away because the run is stopping."""
    finished_at: int | None = None
    """The epoch after which a bounded input has no more rows."""
    finished: Finished | None = None
    """The last epoch that every sink has committed; Spark writes its own commit right after."""
    passed: Finished | None = None
    """The last one that Spark has committed too: the next one has begun."""
    scans: dict[int, int] = field(default_factory=dict)
    """epoch → how often its root was read: the divisor of Spark's own input count"""
    watermarks: Watermarks | None = None
    """The clocks of the inputs, for queries that go by event time."""
    query: Any = None
    """Spark's query, once it has started."""
    started: threading.Event = field(default_factory=threading.Event)
    durability: Durability = field(init=False)

    def __post_init__(self) -> None:
        self.durability = Durability(self.checkpoint.storage)

    def __call__(self, frame: DataFrame, number: int) -> None:
        if self.stopping() or (self.finished_at is not None and number > self.finished_at):
            self.refused = True
            raise StopRequested
        self.passed = self.finished
        try:
            self._run(frame, number)
        except BaseException as error:
            self.failure = error
            raise

    def _run(self, frame: DataFrame, number: int) -> None:
        started, entry, plan = time.monotonic(), self.checkpoint.entry(number), self.plan_for(number)
        self.planned_at = entry.time_ms / 1000
        clock = datetime.fromtimestamp(entry.time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        lowering = self._lowering_for(plan, frame)
        self._require_inputs(plan, number, entry, clock)
        lost = self._lost(plan, number, entry)
        self.durability.planned(number, entry)
        frames = EpochFrames(
            plan, frame, lowering, number, entry, clock, self._operators if self.watermarks else None, self._accepts(number)
        )
        try:
            self._fill(plan, frames, clock)
            staged, skipped = self._stage(plan, frames, number, entry, clock)
            with _aborting(staged):
                rejected = frames.bad_rows() if staged else {}
                late = frames.late.counts() if frames.late else {}
                watermark = self._keep_time(frames, self.planned_at) if self.watermarks else None
                self.durability.computed()
                self.lowering.checkpoint.require_lease()
            self._commit(staged)
        finally:
            frames.release()
        if self.redelivers is None:
            self.deliveries.received(plan.sinks, number)
        else:
            skipped = []  # the other sinks are not asked for anything
        self.planned_at = None
        self.scans[number] = frames.scans
        self.finished = Finished(number, offsets_of(plan, entry))
        facts = EpochFacts(plan.name, number, time.monotonic() - started, {}, rejected, tuple(skipped), (), late, watermark, lost)
        self._note(plan, staged, facts, frames.collapsed)
        self._tally(plan)
        if entry.flushes or (self.bounded and self._exhausted(plan, entry)):
            self.finished_at = number

    def _accepts(self, number: int) -> bool:
        return self.accepts and number == self.repeated

    def _require_inputs(self, plan: QueryPlan, number: int, entry: OffsetEntry, clock: str) -> None:
        """Before an epoch is read again: what it reads must be what it was."""
        if (number != self.repeated and self.redelivers is None) or self._accepts(number):
            return
        held, begun = [], False
        for sink in plan.sinks:
            self.failed_node, epoch = sink.name, self.epoch_of(sink, number, entry.digest, clock)
            held.append(self._holds(sink, epoch))
            begun = begun or _sink(sink).has_begun(epoch)
        self.failed_node = ""
        if all(held) and not plan.stateful and not plan.filling:
            return
        seen = any(held) or begun or bool(plan.filling) or self.redelivers is not None or self.checkpoint.has_staged(number)
        changed = refuse_changed(plan, self.lowering, self.checkpoint, number, entry, seen=seen)
        if changed:
            self.recorder.warn(
                f"query `{plan.name}`: no sink holds any of epoch {number}, so it is read as its files are now: {', '.join(changed)}"
            )

    def _lost(self, plan: QueryPlan, number: int, entry: OffsetEntry) -> dict[str, int]:
        """What is gone that this epoch was to read, for sources that are told to go on without it."""
        if not any(isinstance(node.component, Source) and node.component.may_lose for node in plan.sources):
            return {}
        begin = self.finished.offsets if self.finished else begin_of(plan, self.checkpoint, number)
        return lost_rows(plan, self.lowering, begin, offsets_of(plan, entry))

    def _lowering_for(self, plan: QueryPlan, frame: DataFrame) -> Lowering:
        """An epoch that was planned with other functions is finished with them."""
        if plan.functions != self.lowering.functions:
            register(frame.sparkSession, plan.functions, self.lowering.directory, self.lowering.hidden)
            self.lowering = replace(self.lowering, functions=plan.functions)
        return self.lowering

    def _stage(
        self, plan: QueryPlan, frames: EpochFrames, number: int, entry: OffsetEntry, clock: str
    ) -> tuple[list[tuple[Node, Staged, Epoch]], list[str]]:
        staged: list[tuple[Node, Staged, Epoch]] = []
        skipped: list[str] = []
        try:
            for sink in plan.sinks:
                self.failed_node = sink.name
                epoch = self.epoch_of(sink, number, entry.digest, clock)
                if self._holds(sink, epoch):
                    skipped.append(sink.name)
                    continue
                if plan.belated(sink) and not staged:
                    frames.run()
                rows, epoch = (
                    frames.for_sink(sink),
                    replace(epoch, repeatable=frames.repeatable(sink), before=self.ledgers[sink.name], accepts=self._accepts(number)),
                )
                staged.append((sink, _sink(sink).stage(rows, epoch), epoch))
            if not staged and plan.stateful:
                frames.run()
            if frames.late:
                self.failed_node = plan.root.name
                frames.late.refuse()
        except BaseException:
            _abort(staged)
            raise
        return staged, skipped

    def _fill(self, plan: QueryPlan, frames: EpochFrames, clock: str) -> None:
        """Dynamic tables get the epoch's rows first, so that its sinks see them looked up. A repeated epoch puts the same rows again."""
        for node in plan.filling:
            self.failed_node = node.name
            assert isinstance(node.component, Transform)
            rows = node.component.fill(frames.for_table(node), self.lowering.context(node, clock))
            self.recorder.passed(node.name, rows)
        self.failed_node = ""

    def _operators(self) -> Operators:
        self.started.wait(_START_SECONDS)
        return Operators(self.query)

    def _keep_time(self, frames: EpochFrames, planned_at: float) -> WatermarkFacts | None:
        """Follow the inputs' clocks; where one is silent and others are not, move Spark's on without it."""
        assert self.watermarks is not None and frames.operators is not None
        tracker = self.query.streamingQuery().watermarkTracker()
        seen = frames.operators.saw()
        self.watermarks.refuse(seen, round(planned_at * 1000))
        loud = self.watermarks.observe(seen)
        target = self.watermarks.target(planned_at)
        if target is not None and target > int(tracker.currentWatermark()):
            tracker.setWatermark(target)
        self.watermarks.ended(loud)
        return self.watermarks.facts(int(tracker.currentWatermark()))

    def _commit(self, staged: list[tuple[Node, Staged, Epoch]]) -> None:
        for works in _grouped(staged):
            sink, work, epoch = works[0]
            self.failed_node = sink.name
            if len(works) > 1:
                _sink(sink).commit_together([(each, own) for _, each, own in works])
            else:
                _sink(sink).commit(work, epoch)
            for each, _, own in works:
                self.ledgers[each.name] = LedgerEntry(own.number, own.digest)
                if kept := self._kept_ledger(each, own):
                    kept.write(own)
        self.failed_node = ""

    def epoch_of(self, sink: Node, number: int, digest: str, clock: str = "") -> Epoch:
        return Epoch(self.checkpoint.query_id(), sink.name, number, digest, clock, self.lowering.context(sink, clock))

    def recall(self, sink: Node, epoch: Epoch) -> LedgerEntry | None:
        """What a target says it holds, when a run begins."""
        kept = self._kept_ledger(sink, epoch)
        return kept.read() if kept else _sink(sink).recall(self.lowering.spark, epoch)

    def answers(self, sink: Node) -> bool:
        """Whether somebody can tell what the target holds."""
        component = _sink(sink)
        return component.answers if component.holds_ledger else self.lowering.store is not None

    def _holds(self, sink: Node, epoch: Epoch) -> bool:
        if self.redelivers is not None and epoch.number not in self.redelivers.get(sink.name, ()):
            return True
        if sink.name not in self.ledgers:
            kept = self._kept_ledger(sink, epoch)
            self.ledgers[sink.name] = kept.read() if kept else _sink(sink).ledger(self.lowering.spark, epoch)
        held = self.ledgers[sink.name]
        if held is None or held.epoch < epoch.number:
            return False
        if held.epoch == epoch.number and held.digest == epoch.digest:
            return True
        message = f"sink `{sink.name}` already holds epoch {held.epoch}, and the checkpoint is at epoch {epoch.number} of another history"
        detail = "the checkpoint was restored from an older copy, or its epochs were cut differently; nothing was written"
        raise RunError(
            Diagnostic(
                "MS055",
                message,
                sink.span,
                detail=detail,
                help=f"restore both from the same time, or `--reset {self.checkpoint.name}` with an empty target",
            )
        )

    def _kept_ledger(self, sink: Node, epoch: Epoch) -> KeptLedger | None:
        """The ledger of a target that cannot hold its own."""
        store = self.lowering.store
        return KeptLedger(store, epoch.query, sink.name) if store and not _sink(sink).holds_ledger else None

    def _note(self, plan: QueryPlan, staged: list[tuple[Node, Staged, Epoch]], facts: EpochFacts, collapsed: set[str]) -> None:
        rows = _rows(staged)
        letters = {sink.name: plan.rejecting(sink) for sink in plan.sinks}
        belated = {sink.name for sink in plan.sinks if plan.belated(sink)}
        told = {nodes[0].name: rows[name] for name, nodes in letters.items() if len(nodes) == 1 and name in rows and name not in belated}
        committed = tuple(sink.name for sink, _, _ in staged)
        self.recorder.epoch(replace(facts, rows_out=rows, rejected={**facts.rejected, **told}, committed=committed))
        known: dict[str, int] = {}
        for sink in plan.sinks:
            plain = sink.inputs and sink.name not in belated | collapsed and not letters[sink.name] and not sink.isolates
            if plain and sink.name in rows and plan.node(sink.inputs[0]).kind == "transform":
                known[sink.inputs[0]] = rows[sink.name]
        for name, count in known.items():
            self.recorder.passed(name, count)

    def _tally(self, plan: QueryPlan) -> None:
        """What nodes have counted themselves."""
        for node in plan.nodes:
            counts = node.component.tally(self.lowering.memory.get(node.name, {})) if isinstance(node.component, Transform) else {}
            if counts:
                self.recorder.looked_up(node.name, counts["hits"], counts["misses"])

    def _exhausted(self, plan: QueryPlan, entry: OffsetEntry) -> bool:
        return all(offset is not None and self._ends(node, offset) for node, offset in zip(plan.sources, entry.offsets, strict=False))

    def _ends(self, node: Node, offset: Any) -> bool:
        return isinstance(node.component, Source) and node.component.exhausted(offset, self.lowering.context(node))


class StopRequested(Exception):  # noqa: N818 — not an error: the next epoch is refused because the run is stopping
    """Raised instead of starting another epoch."""


def _rows(staged: list[tuple[Node, Staged, Epoch]]) -> dict[str, int]:
    """Sink → the rows that it is about to commit, where it counts them."""
    return {sink.name: work.rows for sink, work, _ in staged if work.rows is not None}


@contextmanager
def _aborting(staged: list[tuple[Node, Staged, Epoch]]) -> Iterator[None]:
    """What fails before the first commit leaves nothing staged."""
    try:
        yield
    except BaseException:
        _abort(staged)
        raise


def _abort(staged: list[tuple[Node, Staged, Epoch]]) -> None:
    for sink, work, epoch in staged:
        _sink(sink).abort(work, epoch)


def _grouped(staged: list[tuple[Node, Staged, Epoch]]) -> list[list[tuple[Node, Staged, Epoch]]]:
    """What is committed together: a group in the place of its first member, every other sink alone."""
    groups: dict[str, list[tuple[Node, Staged, Epoch]]] = {}
    for each in staged:
        sink = _sink(each[0])
        groups.setdefault(f"{sink.type}:{sink.group}" if sink.group else f"sink {each[0].name}", []).append(each)
    return list(groups.values())


def _sink(node: Node) -> Sink:
    assert isinstance(node.component, Sink)
    return node.component
