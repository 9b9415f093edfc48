"""Queries: start, watch, restart after temporary failures, and stop between epochs.

One thread watches all queries. A stop lets the running epoch finish and refuses the next one before it begins. A permanent failure of one
query stops the others in the same way. `state.py` defines the states of a query and its transitions.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from millstream.checkpoint.deliveries import Deliveries
from millstream.checkpoint.evolution import PlanHistory
from millstream.checkpoint.layout import Checkpoint, QueryCheckpoint
from millstream.engine.epoch.loop import EpochLoop
from millstream.engine.epoch.status import Repetition
from millstream.engine.failures import Translator, text_of
from millstream.engine.lowering.nodes import Lowering, Stream
from millstream.engine.run.callback import for_each_epoch
from millstream.engine.run.progress import Facts, count_epoch, finished_epochs
from millstream.engine.run.reject_search import find_reject
from millstream.engine.run.restarts import Restarts
from millstream.engine.run.settlement import Settlement
from millstream.engine.run.source_commits import SourceCommits
from millstream.engine.run.state import QueryEvent, QueryState, next_state
from millstream.engine.run.trigger import trigger_of
from millstream.engine.time.late_rows import require_findable
from millstream.engine.time.watermarks import Watermarks
from millstream.errors import RunError, TemporaryError
from millstream.jvm.death import is_connection_lost
from millstream.observe.facts import Restart
from millstream.observe.recorder import Recorder
from millstream.plan.components import LearnsFromFailures
from millstream.plan.cutting import QueryPlan
from millstream.plan.run_options import RunOptions
from millstream.plan.settings import AvailableNow, Settings
from millstream.rules.real_time import promise
from millstream.secrets import Redactor

_PROGRESS_SECONDS = 2.0
_END_SECONDS = 10
"""How long Spark may take to forget a query that has ended: until then no other query can have its name."""


class Stopping:
    """Whether queries must end after the current epoch: the caller requested it, or a query failed."""

    def __init__(self, asked: threading.Event) -> None:
        self._asked, self._failed = asked, threading.Event()

    def is_set(self) -> bool:
        return self._asked.is_set() or self._failed.is_set()

    def set(self) -> None:
        self._failed.set()


@dataclass(frozen=True, slots=True)
class RunServices:
    """What all queries of a run share."""

    pipeline: str
    checkpoint: Checkpoint
    lowering: Lowering
    settings: Settings
    options: RunOptions
    recorder: Recorder
    stopping: Stopping
    redact: Redactor
    source_commits: SourceCommits


@dataclass
class RunningQuery:
    """One query, from its first start to its last stop."""

    plan: QueryPlan
    history: PlanHistory
    run: RunServices
    state: QueryState = QueryState.STARTING
    handle: StreamingQuery | None = None
    loop: EpochLoop | None = None
    half_done: bool = False
    """Whether this start begins with an epoch that an earlier start planned."""
    failure: RunError | None = None
    read_all_at: float | None = None
    """When the last epoch of a bounded input was found committed."""
    restarts: Restarts = field(init=False)

    def __post_init__(self) -> None:
        self.restarts = Restarts(self.run.settings.restart)

    @property
    def done(self) -> bool:
        return self.state.is_final

    @property
    def checkpoint(self) -> QueryCheckpoint:
        return self.run.checkpoint.query(self.plan.name)

    def start(self) -> None:
        """Start or restart. A failure while starting is a failure of the query."""
        self._release()
        self.read_all_at = None
        checkpoint = self.checkpoint
        self.half_done = checkpoint.last_planned() > checkpoint.last_committed()
        self.loop = self._loop(checkpoint, self._repetition(checkpoint))
        over = (self.plan.flushes and checkpoint.is_flushed()) or self.run.checkpoint.finished_at(self.plan.name) is not None
        if over and not self.run.options.redeliver:
            self._move(QueryEvent.ENDED)
            return
        try:
            event = self._begin(checkpoint, over)
        except Exception as error:  # noqa: BLE001 — whatever Spark raises is translated
            self._fail(error)
            return
        self._move(event)

    def _begin(self, checkpoint: QueryCheckpoint, over: bool) -> QueryEvent:
        """Bring the targets up to date, and start Spark's query unless its input is over."""
        self._prepare_sinks()
        stream = self.run.lowering.build_stream(self.plan)
        self.run.lowering.examine(self.plan, stream)
        require_findable(self.plan, stream.frame)
        if not self._settle() or over:
            return QueryEvent.ENDED if over and not self.run.stopping.is_set() else QueryEvent.HALTED
        flushing = self.half_done and checkpoint.entry(checkpoint.last_planned()).flushes
        self.handle = self._open(stream)
        return QueryEvent.OPENED_FOR_FLUSH if flushing else QueryEvent.OPENED

    def wait(self, seconds: float) -> None:
        """Wait until the query ends or the time is over."""
        if self.handle is None or not self.state.is_live:
            time.sleep(seconds if self.state is QueryState.RESTARTING else 0)
            return
        with suppress(PySparkException):
            self.handle._jsq.awaitTermination(round(seconds * 1000))

    def watch(self) -> None:
        """Called several times a second."""
        if self.state is QueryState.RESTARTING:
            self._watch_restart()
        elif self.state.is_live:
            self._watch_running()

    def _watch_restart(self) -> None:
        if self.run.stopping.is_set():
            self._move(QueryEvent.HALTED)
        elif self.restarts.is_due:
            self._move(QueryEvent.CONTINUES)
            self.start()

    def _watch_running(self) -> None:
        assert self.handle is not None and self.loop is not None
        active, planned = self.handle.isActive, self.loop.status.planned_at
        self.run.recorder.lag(self.plan.name, max(0.0, time.time() - planned) if planned is not None else 0.0)
        self._collect()
        self._report_commits()
        if not self.state.is_live:  # `_collect` found a failure
            return
        if not active:
            with suppress(Exception):  # what made it fail is found below
                self.handle.awaitTermination(_END_SECONDS)
            self._handle_end()
        elif self._has_read_all():
            if self._awaits_progress():
                return
            self._halt()
            if self.state.is_live:
                self._after_input()
        elif self.run.stopping.is_set():
            if self.state is not QueryState.STOPPING:
                self._move(QueryEvent.STOP_ASKED)
            if self._is_between_epochs():
                self._halt()
                if self.state.is_live:  # the last progress may have found a failure
                    self._move(QueryEvent.HALTED)

    def _loop(self, checkpoint: QueryCheckpoint, repetition: Repetition) -> EpochLoop:
        run = self.run
        deliveries = Deliveries(run.checkpoint, self.checkpoint)
        bounded = self.plan.bounded and not repetition.redelivers
        plan_for, stopping = self.history.plan_for, run.stopping.is_set
        return EpochLoop(plan_for, checkpoint, run.lowering, run.recorder, deliveries, stopping, run.options.gate, bounded, repetition)

    def _repetition(self, checkpoint: QueryCheckpoint) -> Repetition:
        """The epoch that an earlier start planned; it is the first epoch of this start."""
        if not self.half_done:
            return Repetition()
        found = Repetition(checkpoint.last_planned(), self.run.options.accept_replay)
        if found.accepts and not self.restarts.count:
            self.run.recorder.warn(f"query `{self.plan.name}`: epoch {found.epoch} is finished with the rows as they are now")
        return found

    def _prepare_sinks(self) -> None:
        assert self.loop is not None
        for sink in self.history.all_sinks():
            self.loop.status.current_node = sink.name
            self.run.recorder.set(sink.name, "sink", guarantee=promise(sink.component, self.run.settings))
            self.run.lowering.sink(sink).prepare(self.run.lowering.spark)
        self.loop.status.current_node = ""

    def _settle(self) -> bool:
        """Make sure that the targets hold all committed epochs; False when the run was stopped meanwhile."""
        assert self.loop is not None
        loop, run = self.loop, self.run
        settled = Settlement(self.history, loop, run.checkpoint, run.options, run.recorder).settle(self._redelivering_loop)
        self.loop = loop
        return settled

    def _redelivering_loop(self, scratch: QueryCheckpoint, repetition: Repetition) -> EpochLoop:
        """The loop for redelivery. It is kept so that a failure can be attributed to its node."""
        self.loop = self._loop(scratch, repetition)
        return self.loop

    def _open(self, stream: Stream) -> StreamingQuery:
        """Start Spark's query, which calls the loop for every epoch."""
        assert self.loop is not None
        spark = self.run.lowering.spark
        self.loop.watermarks = Watermarks(self.plan, stream.clocks) if stream.clocks else None
        self.loop.maintenance = stream.maintenance
        self.loop.samples.stream = stream
        held = {node.name for node in self.plan.nodes if self.plan.is_handed_over(node.name)}
        self.run.recorder.watches.offer(self.plan.name, held, {node.name for node in self.plan.streamed} - held)
        writer = for_each_epoch(stream.frame.writeStream.outputMode(self.plan.output_mode), spark, self.loop)
        writer = writer.option("checkpointLocation", self.checkpoint.url).queryName(self.plan.name)
        trigger = trigger_of(self.plan, self.run.settings, self.run.lowering.directory)
        with trigger.apply(spark):
            handle = writer.trigger(**trigger.arguments).start()
        self.loop.query.set(handle._jsq)
        return handle

    def _collect(self) -> None:
        """Collect the counts from Spark's progress, divided by the number of reads of the epoch's root."""
        assert self.handle is not None and self.loop is not None
        for facts, scans in finished_epochs(self.handle, self.loop.status.scans):
            self._count(facts, scans)

    def _count(self, facts: Facts, scans: int | None) -> None:
        kept = self.loop.maintenance if self.loop is not None else None
        count_epoch(facts, scans, self.plan, self.run.recorder, self.run.lowering, self.checkpoint, kept.reads if kept else None)
        if facts["numInputRows"]:
            self.restarts.forget()

    def _report_commits(self) -> None:
        """Report offsets to the sources, up to the last epoch that Spark has committed."""
        assert self.loop is not None
        finished = self.loop.status.finished
        if finished is None or not self.run.source_commits.waits(self.plan.name, finished.number):
            return
        committed = finished if self.checkpoint.storage.exists(f"commits/{finished.number}") else self.loop.status.committed
        if committed is not None:
            self.loop.durability.sync_commit(committed.number)  # a source may delete rows up to the reported offset
            self.run.source_commits.advance(self.plan.name, committed.number, committed.offsets)

    def _handle_end(self) -> None:
        """Handle the end of Spark's query."""
        assert self.handle is not None and self.loop is not None
        error = self.handle.exception()
        if self._has_read_all() or (error is None and not self.run.stopping.is_set()):
            self._after_input()
        elif error is None or self.loop.status.refused:
            self._move(QueryEvent.HALTED)
        else:
            self._fail(self.loop.status.failure or error)

    def _has_read_all(self) -> bool:
        """Whether the last epoch of a bounded input is committed."""
        assert self.loop is not None
        return self.loop.status.last_epoch is not None and self.checkpoint.last_committed() >= self.loop.status.last_epoch

    def _awaits_progress(self) -> bool:
        """Whether Spark has not reported all epochs yet: it does so right after its commit, and a stop in between would lose the counts."""
        assert self.loop is not None
        now = time.monotonic()
        self.read_all_at = self.read_all_at or now
        return bool(self.loop.status.scans) and now - self.read_all_at < _PROGRESS_SECONDS

    def _after_input(self) -> None:
        """The input has been read. If something is still open, one more epoch closes it."""
        checkpoint = self.checkpoint
        unread = self.half_done and self._takes_single_epochs()
        open_ = not unread and self.plan.flushes and not checkpoint.is_flushed()
        if unread or (open_ and checkpoint.plan_flush(round(time.time() * 1000))):
            self._move(QueryEvent.CONTINUES)
            self.start()
            return
        if self.plan.stateful and self.plan.output_mode == "append" and not self.plan.bounded:
            what = "open windows and state stay open until the next run" if self.plan.clocks else "its state is kept for the next run"
            self.run.recorder.note(f"query `{self.plan.name}`: {what}")
        self._move(QueryEvent.ENDED)

    def _takes_single_epochs(self) -> bool:
        """Whether Spark ends after one epoch. If that epoch was a half-done one, newer rows have not been read yet."""
        ends = isinstance(self.run.settings.trigger, AvailableNow) and not self.plan.bounded
        return ends and any(node.component.single_epoch for node in self.plan.sources)

    def _is_between_epochs(self) -> bool:
        assert self.handle is not None
        status = self.handle.status
        return not status["isDataAvailable"] or "Waiting" in status["message"]

    def _halt(self) -> None:
        """Stop Spark's query between epochs."""
        assert self.handle is not None
        self.handle.stop()
        self._collect()
        self._report_commits()

    def _fail(self, error: BaseException) -> None:
        """Restart after a temporary failure; a permanent one ends the query."""
        assert self.loop is not None
        try:
            if self._can_retry_now(text_of(error)):
                return
        except Exception as away:  # noqa: BLE001 — a source's own lookup failed (registry down): that failure is reported instead
            error = away
        reported = find_reject(error, self.plan, self.checkpoint, self.run.lowering) or error
        nodes, statements = (*self.plan.nodes, *self.plan.sinks), self.run.lowering.statements
        translator = Translator(nodes, self.run.pipeline, self.run.redact, statements)
        failure = translator.translate(reported, self.loop.status.current_node or self.plan.name)
        failure.__cause__ = error
        lost = is_connection_lost(error)  # no query can restart in a dead JVM
        if isinstance(failure, TemporaryError) and self.restarts.are_left and not lost and not self.run.stopping.is_set():
            pause, first = self.restarts.schedule(), failure.diagnostics[0]
            self.run.recorder.restart(Restart(self.plan.name, first.message, self.restarts.count, pause, first.code))
            self._move(QueryEvent.RETRIES)
            return
        self.failure = failure
        self._move(QueryEvent.FAILED)

    def _can_retry_now(self, failure: str) -> bool:
        """Whether a source can handle this failure after a lookup: the query then restarts at once."""
        for node in self.plan.sources:
            source = self.run.lowering.source(node)
            if isinstance(source, LearnsFromFailures) and source.learn(failure):
                self.run.recorder.note(f"query `{self.plan.name}` restarts: `{node.name}` has new information")
                self.restarts.schedule_now()
                self._move(QueryEvent.RETRIES)
                return True
        return False

    def _move(self, event: QueryEvent) -> None:
        """Go to the next state and run its entry action."""
        self.state = next_state(self.state, event)
        self.run.recorder.query_state(self.plan.name, self.state.value)
        if not self.state.is_final:
            return
        if self.loop is not None and self.loop.status.finished is not None:
            self.loop.durability.sync_commit(self.loop.status.finished.number)
        self._release()
        if self.state is QueryState.DONE and self.plan.bounded:
            self.run.checkpoint.finish(self.plan.name, datetime.now(UTC).isoformat(timespec="seconds"))

    def _release(self) -> None:
        self.run.recorder.watches.withdraw(self.plan.name)
        if self.loop is not None:
            self.loop.query.clear()
            self.loop.samples.stream = None
            if self.loop.maintenance is not None:
                with suppress(Exception):  # a dead JVM holds nothing
                    if warning := self.loop.maintenance.close():
                        self.run.recorder.warn(warning)
                self.loop.maintenance = None
