"""Sources are told how far they have been read for good.

An offset counts once Spark's commit of the epoch exists, and as the least over all queries that read the source: what is told may be
deleted there. Telling happens in a thread of its own, the latest offset wins, and a failure costs nothing but a note: the next run
begins by telling what the last one may not have got to.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from millstream.engine.checkpoint import Checkpoint
from millstream.engine.losses import offsets_of
from millstream.engine.lowering import Lowering
from millstream.observe.facts import Recorder
from millstream.plan.components import Source
from millstream.plan.cutting import QueryPlan, cut
from millstream.plan.nodes import Node
from millstream.plan.topology import Topology
from millstream.secrets import Redactor

_PATIENCE_SECONDS = 30


class Commitments:
    """What every query has committed, and what every source has been told. All calls come from the thread that watches."""

    def __init__(self, topology: Topology, lowering: Lowering, recorder: Recorder, redact: Redactor) -> None:
        self._lowering, self._recorder, self._redact = lowering, recorder, redact
        self._listening = {node.name: node for node in topology.sources if _listens(node)}
        plans = cut(topology) if self._listening else ()
        self._readers = {name: [plan.name for plan in plans if name in _names(plan)] for name in self._listening}
        self._offsets = {plan.name: _stored(plan, lowering.checkpoint) for plan in plans}
        self._epochs: dict[str, int] = {}
        self._told: dict[str, Any] = {}
        self._noted: set[str] = set()
        self._thread: ThreadPoolExecutor | None = None
        self._running: dict[str, Future[None]] = {}

    def waits(self, query: str, epoch: int) -> bool:
        """Whether somebody wants to know that the query has committed this epoch."""
        return bool(self._running) or (query in self._offsets and self._epochs.get(query, -1) < epoch)

    def advance(self, query: str, epoch: int, offsets: Mapping[str, Any]) -> None:
        """A query has committed an epoch."""
        self._epochs[query] = epoch
        self._offsets[query] = offsets
        self.tell()

    def tell(self) -> None:
        """Tell every source that is not being told something already."""
        for name, node in self._listening.items():
            running = self._running.get(name)
            if running is not None and running.done():
                self._settle(name, self._running.pop(name))
            offset = self._least(node)
            if offset is not None and name not in self._running and offset != self._told.get(name):
                self._told[name] = offset
                self._running[name] = self._executor().submit(self._call, node, offset)

    def close(self) -> None:
        """Tell what is left to tell."""
        for _ in range(2):
            wait(self._running.values(), _PATIENCE_SECONDS)
            self.tell()
        wait(self._running.values(), _PATIENCE_SECONDS)
        self.tell()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _least(self, node: Node) -> Any:
        """How far all readers have come; None while one of them has not begun."""
        assert isinstance(node.component, Source)
        offsets = [self._offsets[query].get(node.name) for query in self._readers[node.name]]
        return None if not offsets or None in offsets else node.component.reached(offsets)

    def _call(self, node: Node, offset: Any) -> None:
        assert isinstance(node.component, Source)
        node.component.committed(self._lowering.spark, offset, self._lowering.context(node))

    def _settle(self, name: str, told: Future[None]) -> None:
        """A failure is noted once per source; the offset may be told again."""
        error = told.exception()
        if error is not None and name not in self._noted:
            self._noted.add(name)
            reason = self._redact(str(error)).partition("\n")[0]
            self._recorder.note(f"source `{name}` could not be told what is committed: {reason}")

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "millstream-commitments")
        return self._thread


def _listens(node: Node) -> bool:
    return isinstance(node.component, Source) and type(node.component).committed is not Source.committed


def _names(plan: QueryPlan) -> set[str]:
    return {node.name for node in plan.sources}


def _stored(plan: QueryPlan, checkpoint: Checkpoint) -> Mapping[str, Any]:
    """What a query has committed in earlier runs."""
    query = checkpoint.query(plan.name)
    last = query.committed()
    return offsets_of(plan, query.entry(last)) if last >= 0 else {}
