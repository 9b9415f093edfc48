"""Queries in real-time mode: Spark's tasks run on and hand every row on as it comes; an epoch is only how often progress is written.

There is no callback per epoch, so the sink writes with Spark's own writer, and everything that is known comes from Spark's progress.
Each partition of a source occupies a task slot for as long as an epoch lasts: with too few of them Spark would leave partitions
unread and say nothing, so that is refused. A stop waits for the end of the epoch: what it has written is not written again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from millstream.engine.lowering import Stream
from millstream.engine.queries import RunningQuery
from millstream.errors import Diagnostic, RunError
from millstream.observe.facts import EpochFacts
from millstream.plan.components import Sink, Source
from millstream.plan.settings import RealTime

_LAST_SECONDS = 10
"""How long a stop waits for tasks that were told to end."""


@dataclass
class RealTimeQuery(RunningQuery):
    """One query that hands rows on as they come."""

    seen: int = -1
    """The last epoch of Spark's progress that is counted."""
    stopped_in: int | None = None
    """The epoch that was running when the stop came."""

    def _open(self, stream: Stream) -> StreamingQuery:
        (sink,) = self.plan.sinks
        assert isinstance(sink.component, Sink)
        self._require_slots()
        writer = sink.component.stream(stream.frame, self.lowering.context(sink)).outputMode("update")
        writer = writer.option("checkpointLocation", self.progress.url).queryName(self.plan.name)
        jvm: Any = self.lowering.spark._jvm
        trigger = jvm.org.apache.spark.sql.execution.streaming.RealTimeTrigger
        writer._jwrite = writer._jwrite.trigger(trigger.apply(f"{self._every().every.milliseconds} milliseconds"))
        self.seen = self.progress.committed()
        return writer.start()

    def _settle(self) -> bool:
        """Without epochs there is nothing to compare; what was remembered does not hold any more."""
        assert self.loop is not None
        self.loop.deliveries.forget()
        return True

    def _require_slots(self) -> None:
        spark, context = self.lowering.spark, self.lowering.context
        counts = {node.name: _source(node.component).parts(spark, context(node)) or 1 for node in self.plan.sources}
        slots, needed = spark.sparkContext.defaultParallelism, sum(counts.values())
        if needed > slots:
            named = " and ".join(f"`{name}`" for name in counts)
            message = f"{named} {'has' if len(counts) == 1 else 'have'} {needed} partitions, and Spark has {slots} task slots"
            detail = "in real-time mode every partition needs a slot of its own; with fewer some would never be read"
            local = self.settings.master.startswith("local")
            help_ = f"`settings: {{master: 'local[{needed}]'}}`: waiting costs no CPU" if local else f"give Spark {needed} cores"
            raise RunError(Diagnostic("MS075", message, self.plan.sources[0].span, detail=detail, help=help_))

    def _collect(self) -> None:
        assert self.handle is not None
        recent = self.handle._jsq.recentProgress()
        for index in range(len(recent)):
            number = int(recent[index].batchId())
            if number > self.seen:
                self.seen = number
                self._epoch(json.loads(recent[index].json()))

    def _epoch(self, facts: dict[str, Any]) -> None:
        """Spark counts what it has read, and what it has written where the sink's writer tells."""
        assert self.handle is not None
        seconds = facts["durationMs"].get("triggerExecution", 0) / 1000
        written = facts["sink"].get("numOutputRows", -1)
        rows_out = {self.plan.sinks[0].name: written} if written >= 0 else {}
        self.recorder.epoch(EpochFacts(self.plan.name, facts["batchId"], seconds, rows_out, {}))
        self._count(facts, 1)
        self.commitments.advance(self.plan.name, facts["batchId"], self._offsets(facts))
        try:
            self._require_slots()  # a topic may have grown
        except RunError as error:
            self.handle.stop()
            self._fail(error)

    def _offsets(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {node.name: source["endOffset"] for node, source in zip(self.plan.sources, facts["sources"], strict=True)}

    def _tell(self) -> None:
        """Told with the epoch."""

    def _finished(self) -> bool:
        return False

    def _idle(self) -> bool:
        """Whether the epoch that was running when the stop came has ended."""
        if self.stopped_in is None:
            self.stopped_in = self.seen
            self.recorder.note(f"query `{self.plan.name}` ends with its epoch, within {self._every().every} and a moment")
        return self.seen > self.stopped_in

    def _halt(self, state: str) -> None:
        """Spark's stop does not wait for its tasks: one that lives on for a moment would still hand on what comes meanwhile."""
        assert self.handle is not None
        self.handle.stop()
        deadline = time.monotonic() + _LAST_SECONDS
        while self._active_tasks() and time.monotonic() < deadline:
            time.sleep(0.01)
        super()._halt(state)

    def _active_tasks(self) -> int:
        assert self.handle is not None
        tracker = self.lowering.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(self.handle.runId))]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage)

    def _every(self) -> RealTime:
        assert isinstance(self.settings.trigger, RealTime)
        return self.settings.trigger


def _source(component: object) -> Source:
    assert isinstance(component, Source)
    return component
