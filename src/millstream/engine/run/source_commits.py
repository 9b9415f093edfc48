"""Reports committed offsets to the sources.

An offset is reported when Spark's commit of the epoch exists, as the minimum over all queries that read the source: the source may delete
rows up to it. A separate thread reports; the latest offset wins. A failure is only noted: the offset, or a later one, is reported again
with the next epoch, at the end of the run, and when the next run begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from millstream.checkpoint.layout import Checkpoint
from millstream.engine.epoch.offsets import offsets_of
from millstream.engine.lowering.nodes import Lowering
from millstream.observe.gate import Gate
from millstream.observe.recorder import Recorder
from millstream.plan.components import HearsCommits
from millstream.plan.cutting import QueryPlan
from millstream.plan.topology import Topology
from millstream.secrets import Redactor

_PATIENCE_SECONDS = 30


class SourceCommits:
    """The offsets that every query has committed, and those reported to every source. All calls come from the watching thread."""

    def __init__(
        self,
        topology: Topology,
        plans: Sequence[QueryPlan],
        lowering: Lowering,
        recorder: Recorder,
        redact: Redactor,
        gate: Gate,
        given_up: Callable[[], bool],
        *,
        private: bool = False,
    ) -> None:
        """`private`: nothing is reported. While the gate is closed nothing is: a copy of the checkpoint may be in progress."""
        self._gate, self._given_up = gate, given_up
        self._lowering, self._recorder, self._redact = lowering, recorder, redact
        sources = () if private else topology.sources
        self._listening = {node.name: run for node in sources if isinstance(run := lowering.source(node), HearsCommits)}
        plans = plans if self._listening else ()
        self._readers = {name: [plan.name for plan in plans if name in _names(plan)] for name in self._listening}
        self._offsets = {plan.name: _committed_offsets(plan, lowering.checkpoint) for plan in plans}
        self._epochs: dict[str, int] = {}
        self._reported: dict[str, Any] = {}
        self._noted: set[str] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._running: dict[str, Future[None]] = {}

    def waits(self, query: str, epoch: int) -> bool:
        """Whether a source needs to know that the query has committed this epoch."""
        return bool(self._running) or (query in self._offsets and self._epochs.get(query, -1) < epoch)

    def advance(self, query: str, epoch: int, offsets: Mapping[str, Any]) -> None:
        """Record that a query has committed an epoch."""
        self._epochs[query] = epoch
        self._offsets[query] = offsets
        self.report()

    def report(self) -> None:
        """Report to every source that has no report in progress."""
        for name, run in self._listening.items():
            running = self._running.get(name)
            if running is not None and running.done() and not self._was_accepted(name, self._running.pop(name)):
                continue  # it is reported again with the next epoch, and at the end
            offset = self._least(name, run)
            if offset is not None and name not in self._running and offset != self._reported.get(name):
                self._reported[name] = offset
                self._running[name] = self._executor().submit(self._tell, run, offset)

    def _tell(self, run: HearsCommits, offset: Any) -> None:
        with self._gate.passed(self._given_up) as begins:
            if begins:  # else it is reported when the next run begins
                run.on_commit(self._lowering.spark, offset)

    def close(self) -> None:
        """Send the last offsets, waiting up to 3 × 30 s, and stop the thread."""
        for _ in range(2):
            wait(self._running.values(), _PATIENCE_SECONDS)
            self.report()
        wait(self._running.values(), _PATIENCE_SECONDS)
        self.report()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _least(self, name: str, run: HearsCommits) -> Any:
        """The offset that all readers have reached; None while one of them has not begun."""
        offsets = [self._offsets[query].get(name) for query in self._readers[name]]
        return None if not offsets or None in offsets else run.common_offset(offsets)

    def _was_accepted(self, name: str, report: Future[None]) -> bool:
        """Whether the source accepted the offset; a failure is noted once per source."""
        error = report.exception()
        if error is None:
            return True
        del self._reported[name]
        if name not in self._noted:
            self._noted.add(name)
            reason = self._redact(str(error)).partition("\n")[0]
            self._recorder.note(f"source `{name}` did not accept its committed offset: {reason}")
        return False

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "millstream-commitments")
        return self._thread


def _names(plan: QueryPlan) -> set[str]:
    return {node.name for node in plan.sources}


def _committed_offsets(plan: QueryPlan, checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The offsets that a query has committed in earlier runs."""
    query = checkpoint.query(plan.name)
    last = query.last_committed()
    return offsets_of(plan, query.entry(last)) if last >= 0 else {}
