"""Queries: started, watched, restarted after temporary failures, stopped between epochs.

One thread watches them all. A stop lets the running epoch finish; the next one is refused before it begins. A permanent failure of one
query stops the others in the same way.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from millstream.engine.blame import bad_row
from millstream.engine.callback import for_each_epoch
from millstream.engine.checkpoint import Checkpoint, QueryCheckpoint
from millstream.engine.commitments import Commitments
from millstream.engine.counting import count
from millstream.engine.deaths import is_connection_lost
from millstream.engine.deliveries import Deliveries
from millstream.engine.epochs import EpochLoop
from millstream.engine.evolution import PlanHistory
from millstream.engine.failures import text_of, translate
from millstream.engine.lowering import Lowering, Stream
from millstream.engine.settlement import Settlement
from millstream.engine.watermarks import Watermarks
from millstream.errors import Diagnostic, RunError, TransientError
from millstream.observe.facts import Recorder, Restart
from millstream.plan.components import Sink, Source, Transform
from millstream.plan.cutting import QueryPlan
from millstream.plan.realtime import promise
from millstream.plan.running import RunOptions
from millstream.plan.settings import AvailableNow, Interval, Settings
from millstream.secrets import Redactor

_TICK_MS = 1000
"""How often a node that waits for the clock is asked, unless `trigger` says otherwise."""


class Stopping:
    """Whether queries are to end after their epoch: the caller has asked for it, or one of them has failed."""

    def __init__(self, asked: threading.Event) -> None:
        self._asked, self._failed = asked, threading.Event()

    def is_set(self) -> bool:
        return self._asked.is_set() or self._failed.is_set()

    def set(self) -> None:
        self._failed.set()


@dataclass
class RunningQuery:
    """One query from first start to last stop."""

    plan: QueryPlan
    history: PlanHistory
    checkpoint: Checkpoint
    lowering: Lowering
    settings: Settings
    recorder: Recorder
    stopping: Stopping
    redact: Redactor
    pipeline: str
    commitments: Commitments
    options: RunOptions
    handle: StreamingQuery | None = None
    loop: EpochLoop | None = None
    restart_at: float | None = None
    restarts: int = 0
    half_done: bool = False
    """Whether this start begins with an epoch that an earlier one has planned."""
    done: bool = False
    failure: RunError | None = None

    @property
    def bounded(self) -> bool:
        return self.plan.bounded

    @property
    def progress(self) -> QueryCheckpoint:
        return self.checkpoint.query(self.plan.name)

    def start(self) -> None:
        """Start, or start again. Failures while starting are the query's failures."""
        self.restart_at = None
        self._let_go()
        query = self.progress
        self.half_done = query.planned() > query.committed()
        self.loop = self._loop(query)
        if self.half_done:
            self._repeat(query.planned())
        over = (self.plan.flushes and query.flushed()) or self.checkpoint.finished(self.plan.name) is not None
        if over and not self.options.redeliver:
            self._end("done")
            return
        try:
            for sink in self.history.sinks():
                if isinstance(sink.component, Sink):
                    self.loop.failed_node = sink.name
                    self.recorder.promises(sink.name, promise(sink.component, self.settings))
                    sink.component.prepare(self.lowering.spark, self.lowering.context(sink))
            self.loop.failed_node = ""
            stream = self.lowering.streaming(self.plan)
            self.lowering.examine(self.plan, stream)
            if not self._settle() or over:
                self._end("done" if over and not self.stopping.is_set() else "stopped")
                return
            self.handle = self._open(stream)
        except Exception as error:  # noqa: BLE001 — whatever Spark raises is translated
            self._fail(error)
            return
        self.recorder.query_state(self.plan.name, "running")

    def _loop(self, query: QueryCheckpoint) -> EpochLoop:
        deliveries, stopping = Deliveries(self.checkpoint, self.progress), self.stopping.is_set
        return EpochLoop(self.history.plan_for, query, self.lowering, self.recorder, deliveries, stopping, bounded=self.bounded)

    def _repeat(self, epoch: int) -> None:
        """The first epoch of this start is one that an earlier start has planned."""
        assert self.loop is not None
        self.loop.repeated, self.loop.accepts = epoch, self.options.accept_replay
        if self.loop.accepts and not self.restarts:
            self.recorder.warn(f"query `{self.plan.name}`: epoch {epoch} is finished with the rows as they are now")

    def _settle(self) -> bool:
        """Make sure that the targets hold what was committed to them; False when a stop came meanwhile."""
        assert self.loop is not None
        loop = self.loop
        settled = Settlement(self.history, loop, self.checkpoint, self.options, self.recorder).settle(self._repeating)
        self.loop = loop
        return settled

    def _repeating(self, scratch: QueryCheckpoint) -> EpochLoop:
        """The loop for epochs that are delivered again. When it fails, it knows the node."""
        self.loop = replace(self._loop(scratch), bounded=False)
        return self.loop

    def _open(self, stream: Stream) -> StreamingQuery:
        """Spark's query, whose epochs come to the loop."""
        assert self.loop is not None
        self.loop.watermarks = Watermarks(self.plan, stream.clocks) if stream.clocks else None
        writer = for_each_epoch(stream.frame.writeStream.outputMode(self.plan.output_mode), self.lowering.spark, self.loop)
        writer = writer.option("checkpointLocation", self.progress.url).queryName(self.plan.name)
        with self._ending():
            handle = writer.trigger(**self._trigger()).start()
        self.loop.query = handle._jsq
        self.loop.started.set()
        return handle

    def wait(self, seconds: float) -> None:
        """Until the query ends, or the time is over."""
        with suppress(PySparkException):
            if self.handle is not None and self.restart_at is None:
                self.handle._jsq.awaitTermination(round(seconds * 1000))
                return
        time.sleep(seconds if self.restart_at is not None else 0)

    def watch(self) -> None:
        """Called several times a second."""
        if self.done:
            return
        if self.restart_at is not None:
            if self.stopping.is_set():
                self._end("stopped")
            elif time.monotonic() >= self.restart_at:
                self.start()
            return
        assert self.handle is not None and self.loop is not None
        active, planned = self.handle.isActive, self.loop.planned_at
        self.recorder.lag(self.plan.name, max(0.0, time.time() - planned) if planned is not None else 0.0)
        self._collect()
        self._tell()
        if not active:
            self._ended()
        elif self._finished():
            self._halt("done")
        elif self.stopping.is_set() and self._idle():
            self._halt("stopped")

    def _tell(self) -> None:
        """How far the sources are read for good: up to the last epoch with a commit of Spark's."""
        assert self.loop is not None
        done = self.loop.finished
        if done is None or not self.commitments.waits(self.plan.name, done.number):
            return
        passed = done if self.progress.storage.exists(f"commits/{done.number}") else self.loop.passed
        if passed is not None:
            self.loop.durability.committed(passed.number)  # a source may forget what it is told is read
            self.commitments.advance(self.plan.name, passed.number, passed.offsets)

    def _trigger(self) -> dict[str, Any]:
        sources = [node.component for node in self.plan.sources if isinstance(node.component, Source)]
        if self.bounded:
            ending = [source.self_ending for source in sources]
            if any(ending) and not all(ending):
                raise RunError(self._endless())
            return {"availableNow": True} if all(ending) else {"processingTime": "0 seconds"}
        trigger = self.settings.trigger
        if isinstance(trigger, AvailableNow):
            return {"availableNow": True}
        if isinstance(trigger, Interval):
            return {"processingTime": f"{trigger.every.milliseconds} milliseconds"}
        least = _TICK_MS if self._ticks() else 0
        return {"processingTime": f"{max(least, min((source.poll_interval_ms for source in sources), default=0))} milliseconds"}

    def _ticks(self) -> bool:
        """Whether a node waits for the clock: Spark then runs an epoch at every trigger."""
        directory = self.lowering.directory
        return any(isinstance(node.component, Transform) and node.component.ticks(directory) for node in self.plan.above)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """A run that is to end by itself cannot wait for the clock: Spark would find work in it for ever."""
        if not self._ticks() or not (self.bounded or isinstance(self.settings.trigger, AvailableNow)):
            yield
            return
        conf, name = self.lowering.spark.conf, "spark.sql.streaming.noDataMicroBatches.enabled"
        before = conf.get(name)
        conf.set(name, "false")
        try:
            yield
        finally:
            conf.set(name, before or "true")

    def _endless(self) -> Diagnostic:
        """Two ways to find an end cannot be combined in one Spark query."""
        several = [node for node in self.plan.sources if isinstance(node.component, Source) and not node.component.self_ending]
        message = (
            f"`{several[0].name}` gives its rows in several epochs, and shares query `{self.plan.name}` with a source that ends otherwise"
        )
        return Diagnostic(
            "MS036", message, several[0].span, help="set `rows_per_epoch` to at least `rows`, and leave `rows_per_second` out"
        )

    def _ended(self) -> None:
        assert self.handle is not None and self.loop is not None
        error = self.handle.exception()
        if self._finished() or (error is None and not self.stopping.is_set()):
            self._done()
        elif error is None or self.loop.refused:
            self._end("stopped")
        else:
            self._fail(self.loop.failure or error)

    def _finished(self) -> bool:
        """Whether the last epoch of a bounded input is committed."""
        assert self.loop is not None
        return self.loop.finished_at is not None and self.progress.committed() >= self.loop.finished_at

    def _done(self) -> None:
        """The input has been read. What is still open closes in one more epoch, if that has not been."""
        if self.half_done and self._at_once():
            self.start()
            return
        progress = self.progress
        if self.plan.flushes and not progress.flushed() and progress.plan_flush(round(time.time() * 1000)):
            self.start()
            return
        if self.plan.stateful and self.plan.output_mode == "append" and not self.bounded:
            self.recorder.note(f"query `{self.plan.name}`: what is still open stays open until the next run")
        self._end("done")

    def _at_once(self) -> bool:
        """Whether Spark ends after one epoch, and that was the one which was half done: what came since has not been looked at."""
        sources = [node.component for node in self.plan.sources if isinstance(node.component, Source)]
        return not self.bounded and isinstance(self.settings.trigger, AvailableNow) and any(source.at_once for source in sources)

    def _fail(self, error: BaseException) -> None:
        assert self.loop is not None
        try:
            if self._learnt(text_of(error)):
                return
        except Exception as away:  # noqa: BLE001 — whoever was asked may be away: that is the failure then
            error = away
        nodes = (*self.plan.nodes, *self.plan.sinks)
        told = bad_row(error, self.plan, self.progress, self.lowering) or error
        failure = translate(told, nodes, self.loop.failed_node or self.plan.name, self.redact, self.pipeline)
        failure.__cause__ = error
        if is_connection_lost(error):  # no query starts again in a JVM that is gone
            self.failure = failure
            self._end("failed")
            return
        if isinstance(failure, TransientError) and self.restarts < self.settings.restart.limit and not self.stopping.is_set():
            self._schedule(failure)
            return
        self.failure = failure
        self._end("failed")

    def _learnt(self, text: str) -> bool:
        """Whether a source knows more after this failure: then the query starts again at once."""
        for node in self.plan.sources:
            assert isinstance(node.component, Source)
            if node.component.learns(text, self.lowering.context(node)):
                self.restart_at = time.monotonic()
                self.recorder.note(f"query `{self.plan.name}` starts again: `{node.name}` has learnt something new")
                return True
        return False

    def _schedule(self, failure: TransientError) -> None:
        pause = min(self.settings.restart.backoff.seconds * 2**self.restarts, self.settings.restart.max_backoff.seconds)
        self.restarts += 1
        self.restart_at = time.monotonic() + pause
        self.recorder.restart(Restart(self.plan.name, failure.diagnostics[0].message, self.restarts, pause))

    def _idle(self) -> bool:
        assert self.handle is not None
        status = self.handle.status
        return not status["isDataAvailable"] or "Waiting" in status["message"]

    def _halt(self, state: str) -> None:
        assert self.handle is not None
        self.handle.stop()
        self._collect()
        self._tell()
        if state == "done":
            self._done()
        else:
            self._end(state)

    def _let_go(self) -> None:
        """Spark's query knows the loop, and the loop the query: neither language could ever free that circle alone."""
        if self.loop is not None:
            self.loop.query = None

    def _end(self, state: Any) -> None:
        self.done = True
        if self.loop is not None and self.loop.finished is not None:
            self.loop.durability.committed(self.loop.finished.number)
        self._let_go()
        self.recorder.query_state(self.plan.name, state)
        if state == "done" and self.bounded:
            self.checkpoint.finish(self.plan.name, datetime.now(UTC).isoformat(timespec="seconds"))

    def _collect(self) -> None:
        """Input counts from Spark's own progress, divided by how often the epoch's root was read."""
        assert self.handle is not None and self.loop is not None
        waiting = set(self.loop.scans)
        if not waiting:
            return
        recent, found = self.handle._jsq.recentProgress(), []
        for index in range(len(recent) - 1, -1, -1):
            facts = json.loads(recent[index].json())
            number = facts["batchId"]
            if number in waiting and "addBatch" in facts["durationMs"]:
                waiting.discard(number)
                found.append((facts, max(1, self.loop.scans.pop(number))))
            if not waiting or number < min(waiting):
                break
        for facts, scans in reversed(found):
            self._count(facts, scans)

    def _count(self, facts: dict[str, Any], scans: int) -> None:
        count(facts, scans, self.plan, self.recorder, self.lowering, self.progress)
        if self.restarts and facts["numInputRows"]:
            self.restarts = 0
