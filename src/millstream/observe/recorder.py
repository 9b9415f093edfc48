"""The recorder of a run: the engine tells it facts; it adds them up, and publishes each as an event.

It is the only way in. What shows a run reads snapshots or events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from millstream.observe import events
from millstream.observe.events import Event
from millstream.observe.facts import Caution, EpochFacts, NodeFacts, QueryFacts, Restart, Snapshot, State
from millstream.observe.metrics import Kind
from millstream.observe.stream import EventStream
from millstream.observe.traced import TracedRecords
from millstream.observe.watches import Watches


class Recorder:
    """Adds up facts. It is thread-safe: several queries record, and another thread takes snapshots."""

    def __init__(self, pipeline: str) -> None:
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._snapshot = Snapshot(pipeline, "starting", 0.0)
        self._read: dict[str, dict[str, int | None]] = {}
        """source → query → rows read"""
        self.events = EventStream()
        self.watches = Watches()
        self.traced = TracedRecords()

    def snapshot(self) -> Snapshot:
        with self._lock:
            return replace(self._snapshot, seconds=time.monotonic() - self._started)

    def publish(self, event: Event) -> None:
        """Publish an event that changes no total."""
        self.events.publish(event)

    def measure(self) -> None:
        """Publish the totals."""
        found = self.snapshot()
        nodes = {name: _known_counts(facts) for name, facts in found.nodes.items()}
        queries = {name: _measures(facts) for name, facts in found.queries.items()}
        self.publish(events.Measured(seconds=found.seconds, nodes=nodes, queries=queries))

    def state(self, state: State) -> None:
        with self._lock:
            self._snapshot = replace(self._snapshot, state=state)
        self.publish(events.RunChanged(state=state))

    def jvm(self, process: int | None) -> None:
        with self._lock:
            self._snapshot = replace(self._snapshot, jvm=process)

    def query_state(self, query: str, state: State) -> None:
        with self._lock:
            self._update(query, state=state)
        self.publish(events.QueryChanged(query=query, state=state))

    def note(self, text: str) -> None:
        self._note(text)
        self.publish(events.Noted(message=str(text), warning=isinstance(text, Caution)))

    def warn(self, text: str) -> None:
        """Add a note that is a warning."""
        self.note(Caution(text))

    def restart(self, why: Restart) -> None:
        """Record that one query starts again or, if Spark does, all queries."""
        self._note(why)
        with self._lock:
            if why.query:
                self._update(why.query, state="restarting", restarts=self._query(why.query).restarts + 1)
        self.publish(events.Restarting(query=why.query, message=why.reason, attempt=why.attempt, pause=why.seconds, code=why.code))

    def read(self, query: str, rows: Mapping[str, int | None]) -> None:
        """Record rows that a query has read from sources. Each query reads all rows of a source, so the total is the largest one of any
        query. If one count of a query is unknown, its total stays unknown.
        """
        with self._lock:
            for name, count in rows.items():
                totals = self._read.setdefault(name, {})
                before = totals.get(query, 0)
                totals[query] = None if before is None or count is None else before + count
                known = [total for total in totals.values() if total is not None]
                facts = self._snapshot.nodes.get(name, NodeFacts())
                after = replace(facts, kind="source", rows_out=max(known, default=None))
                self._snapshot = replace(self._snapshot, nodes={**self._snapshot.nodes, name: after})
        self.publish(events.RowsRead(query=query, rows=dict(rows)))

    def speed(self, query: str, rows_per_second: float) -> None:
        with self._lock:
            self._update(query, rows_per_second=rows_per_second)

    def lag(self, query: str, seconds: float) -> None:
        with self._lock:
            self._update(query, lag_seconds=seconds)

    def epoch(self, facts: EpochFacts) -> None:
        with self._lock:
            self._add_epoch(facts)
        self.publish(
            events.EpochFinished(
                query=facts.query,
                epoch=facts.number,
                seconds=facts.seconds,
                rows_out=dict(facts.rows_out),
                rejected=dict(facts.rejected),
                late=dict(facts.late),
                lost=dict(facts.lost),
                skipped=facts.skipped,
                watermark=facts.watermark,
                bytes_out=dict(facts.bytes_out),
            )
        )

    def set(self, name: str, kind: Kind | None = None, **values: object) -> None:
        """Set facts of a node that are not added up: its state, its waiting rows, its guarantee."""
        with self._lock:
            before = self._snapshot.nodes.get(name, NodeFacts())
            after = replace(before, kind=kind or before.kind, **values)  # type: ignore[arg-type]  # the callers name fields of NodeFacts
            self._snapshot = replace(self._snapshot, nodes={**self._snapshot.nodes, name: after})
        if after != before:
            self.publish(events.NodeChanged(node=name, kind=kind, facts=values))

    def add(self, name: str, kind: Kind | None = None, **counts: int) -> None:
        """Add to the counts of a node."""
        with self._lock:
            self._add(name, kind, **counts)

    def count(self, name: str, counts: Mapping[str, int]) -> None:
        """Add to the counters that a plugin keeps of its node."""
        with self._lock:
            before = self._snapshot.nodes.get(name, NodeFacts())
            after = replace(before, counted=before.counted.plus(counts))
            self._snapshot = replace(self._snapshot, nodes={**self._snapshot.nodes, name: after})

    def _note(self, text: str) -> None:
        with self._lock:
            self._snapshot = replace(self._snapshot, notes=(*self._snapshot.notes, text))

    def _add_epoch(self, facts: EpochFacts) -> None:
        for name, count in facts.rows_out.items():
            self._add(name, "sink", rows_in=count)
        for name, count in facts.bytes_out.items():
            self._add(name, "sink", bytes_in=count)
        for name in facts.committed:
            self._add(name, "sink", epochs=1)
        for name, count in facts.rejected.items():
            self._add(name, None, rejected=count)
        for name, count in facts.late.items():
            self._add(name, None, late=count)
        for name, count in facts.lost.items():
            self._add(name, None, lost=count)
        before = self._query(facts.query)
        self._update(
            facts.query,
            epochs=before.epochs + 1,
            last_epoch=facts.number,
            last_seconds=facts.seconds,
            last_at=time.time(),
            durations=before.durations.plus(facts.seconds),
            skipped=before.skipped + len(facts.skipped),
            watermark=facts.watermark or before.watermark,
        )

    def _query(self, query: str) -> QueryFacts:
        return self._snapshot.queries.get(query, QueryFacts())

    def _update(self, query: str, **changes: object) -> None:
        changed = replace(self._query(query), **changes)  # type: ignore[arg-type]  # the callers above name real fields
        self._snapshot = replace(self._snapshot, queries={**self._snapshot.queries, query: changed})

    def _add(self, name: str, kind: Kind | None, **counts: int) -> None:
        before = self._snapshot.nodes.get(name, NodeFacts())
        added = {key: (getattr(before, key) or 0) + count for key, count in counts.items()}
        after = replace(before, kind=kind or before.kind, **added)  # type: ignore[arg-type]  # the callers above name counts
        self._snapshot = replace(self._snapshot, nodes={**self._snapshot.nodes, name: after})


def _known_counts(facts: NodeFacts) -> dict[str, int]:
    counts = {each.name: getattr(facts, each.name) for each in fields(facts)}
    found = {name: value for name, value in counts.items() if isinstance(value, int)}
    state = facts.state
    return found | ({"state_rows": state.rows, "state_bytes": state.memory_bytes} if state else {})


def _measures(facts: QueryFacts) -> dict[str, float]:
    found: dict[str, Any] = {"epochs": facts.epochs, "seconds": facts.durations.total, "lag": facts.lag_seconds, "restarts": facts.restarts}
    return found | ({"watermark_lag": facts.watermark.lag_seconds} if facts.watermark else {})
