"""Queries in real-time mode: Spark's tasks keep running and pass on every row at once; an epoch only sets how often progress is written.

There is no callback per epoch. The sink writes with Spark's own writer, and all facts come from Spark's progress. Each partition of a
source occupies a task slot during an epoch. With too few slots Spark would leave partitions unread without a message, so that is refused. A
stop waits for the end of the epoch, so that its rows are not written again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from millstream.engine.lowering.nodes import Stream
from millstream.engine.run.query import RunningQuery
from millstream.errors import Diagnostic, RunError
from millstream.observe.facts import EpochFacts
from millstream.plan.components import Partitioned, StreamsRows
from millstream.plan.settings import RealTime

_LAST_SECONDS = 10
"""How long a stop waits for tasks that were told to end."""


@dataclass
class RealTimeQuery(RunningQuery):
    """One query in real-time mode."""

    seen: int = -1
    """The last epoch of Spark's progress that was counted."""
    stopped_in: int | None = None
    """The last epoch that had ended when the stop was requested."""

    def _open(self, stream: Stream) -> StreamingQuery:
        (sink,) = self.plan.sinks
        run = self.run.lowering.sink(sink)
        assert isinstance(run, StreamsRows)
        self._require_slots()
        writer = run.stream(stream.frame).outputMode("update")
        writer = writer.option("checkpointLocation", self.checkpoint.url).queryName(self.plan.name)
        jvm: Any = self.run.lowering.spark._jvm
        trigger = jvm.org.apache.spark.sql.execution.streaming.RealTimeTrigger
        writer._jwrite = writer._jwrite.trigger(trigger.apply(f"{self._every().every.milliseconds} milliseconds"))
        self.seen = self.checkpoint.last_committed()
        return writer.start()

    def _settle(self) -> bool:
        """Without epochs there is nothing to compare; stored deliveries are no longer valid."""
        assert self.loop is not None
        self.loop.deliveries.forget()
        return True

    def _require_slots(self) -> None:
        spark = self.run.lowering.spark
        runs = {node.name: self.run.lowering.source(node) for node in self.plan.sources}
        counts = {name: run.partitions(spark) if isinstance(run, Partitioned) else 1 for name, run in runs.items()}
        slots, needed = spark.sparkContext.defaultParallelism, sum(counts.values())
        if needed > slots:
            named = " and ".join(f"`{name}`" for name in counts)
            message = f"{named} {'has' if len(counts) == 1 else 'have'} {needed} partitions, and Spark has {slots} task slots"
            detail = "in real-time mode every partition needs a slot of its own; with fewer slots some partitions would never be read"
            local = self.run.settings.master.startswith("local")
            help_ = f"`settings: {{master: 'local[{needed}]'}}`: waiting costs no CPU" if local else f"give Spark {needed} cores"
            raise RunError(Diagnostic("MS075", message, self.plan.sources[0].span, detail=detail, help=help_))

    def _collect(self) -> None:
        assert self.handle is not None
        recent = self.handle._jsq.recentProgress()
        for index in range(len(recent)):
            number = int(recent[index].batchId())
            if number > self.seen and self.state.is_live:  # an epoch may end the query
                self.seen = number
                self._epoch(json.loads(recent[index].json()))

    def _epoch(self, facts: dict[str, Any]) -> None:
        """Record the rows that Spark read, and the rows that it wrote if the sink's writer reports them."""
        assert self.handle is not None
        seconds = facts["durationMs"].get("triggerExecution", 0) / 1000
        written = facts["sink"].get("numOutputRows", -1)
        rows_out = {self.plan.sinks[0].name: written} if written >= 0 else {}
        self.run.recorder.epoch(EpochFacts(self.plan.name, facts["batchId"], seconds, rows_out, {}))
        self._count(facts, 1)
        self.run.source_commits.advance(self.plan.name, facts["batchId"], self._offsets(facts))
        try:
            self._require_slots()  # a topic may have grown
        except RunError as error:
            self.handle.stop()
            self._fail(error)

    def _offsets(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {node.name: source["endOffset"] for node, source in zip(self.plan.sources, facts["sources"], strict=True)}

    def _report_commits(self) -> None:
        """Does nothing: commits are reported with the epoch."""

    def _has_read_all(self) -> bool:
        return False

    def _is_between_epochs(self) -> bool:
        """Whether the epoch that was running when the stop was requested has ended."""
        if self.stopped_in is None:
            self.stopped_in = max(self.seen, self.checkpoint.last_committed())  # Spark's progress comes after its commit
            self.run.recorder.note(f"query `{self.plan.name}` ends with its epoch, after about {self._every().every} at most")
        return self.seen > self.stopped_in

    def _halt(self) -> None:
        """Spark's stop does not wait for its tasks: a task that is still running could pass on new rows."""
        assert self.handle is not None
        self.handle.stop()
        deadline = time.monotonic() + _LAST_SECONDS
        while self._active_tasks() and time.monotonic() < deadline:
            time.sleep(0.01)
        super()._halt()

    def _active_tasks(self) -> int:
        assert self.handle is not None
        tracker = self.run.lowering.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(self.handle.runId))]
        stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(stage.numActiveTasks for stage in stages if stage)

    def _every(self) -> RealTime:
        assert isinstance(self.run.settings.trigger, RealTime)
        return self.run.settings.trigger
