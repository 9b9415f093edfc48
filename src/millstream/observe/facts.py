"""Counts of a run, per node and per epoch, and the one place where they are added up.

The engine records; everybody else takes a snapshot. Counts come from what Spark and the sinks report anyway: no job is run for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from millstream.observe.metrics import Kind, metric, plural

State = Literal["starting", "running", "flushing", "restarting", "stopping", "done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class WatermarkFacts:
    """How far event time has come in a query."""

    at_ms: int
    """The watermark, in milliseconds since 1970."""
    lag_seconds: float
    """How far it is behind the wall clock."""
    slowest: str
    """The input that holds it back."""
    spread_seconds: float = 0.0
    """How far the fastest input is ahead of it."""


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The state of a query."""

    rows: int
    """Keys, or rows of a join."""
    memory_bytes: int
    disk_bytes: int | None = None
    """Size of the state's files, where the store tells."""

    def __str__(self) -> str:
        return f"{plural(self.rows, 'row')}, {self.memory_bytes >> 20:,} MB"


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """What one epoch did."""

    query: str
    number: int
    seconds: float
    rows_out: Mapping[str, int]
    """sink → rows committed"""
    rejected: Mapping[str, int]
    """node → rejects"""
    skipped: tuple[str, ...] = ()
    """Sinks that held the epoch already."""
    committed: tuple[str, ...] = ()
    """Sinks that have written it."""
    late: Mapping[str, int] = field(default_factory=dict)
    """node → rows that came too late"""
    watermark: WatermarkFacts | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    """source → rows that were gone before they were read"""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Totals of one node in this run. None where nothing counts. A metric is one field here, and one call of `Recorder.add`."""

    kind: Kind = "transform"
    guarantee: str = ""
    """What a sink promises."""
    rows_in: int | None = metric(None, "rows in", report="always", column="always", phrase={"sink": "wrote {}"}, total={"sink": "written"})
    rows_out: int | None = metric(
        None, "rows out", report="always", column="always", phrase={"source": "read {}", "transform": "passed {}"}, total={"source": "read"}
    )
    rejected: int = metric(0, "rejected", report="always", column="always", unit="rejected row", phrase="{}", warning=True)
    late: int = metric(0, "late", report="always", column="when not zero", unit="late row", phrase="{}", total="late", warning=True)
    """Rows that came after their result had closed."""
    state: StateFacts | None = metric(None, "state", report="when known", column="when known", phrase="state: {}")
    epochs: int | None = metric(None, "epochs", unit="epoch", report="when known")
    """Epochs that a sink has committed."""
    waiting: int | None = metric(None, "waiting", report="when known", column="when known", total="waiting")
    """Rows that were in the source and not yet read, when the last epoch was planned."""
    lost: int = metric(0, "lost", unit="message", phrase="{} lost before they were read")
    """Rows that were gone before they were read."""
    hits: int | None = metric(None, "hits", unit="hit", report="when known", phrase="{}")
    """Rows that a lookup found a match for."""
    misses: int | None = metric(None, "misses", unit="row", report="when known", phrase="{} without a match")
    """Rows without one."""


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Totals of one query in this run."""

    epochs: int = 0
    last_epoch: int | None = None
    last_seconds: float = 0.0
    skipped: int = 0
    restarts: int = 0
    rows_per_second: float = 0.0
    lag_seconds: float = 0.0
    """How long the rows of the epoch in progress have been waiting to be committed; 0 between epochs."""
    watermark: WatermarkFacts | None = None
    state: State = "starting"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at one moment."""

    pipeline: str
    state: State
    seconds: float
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    queries: Mapping[str, QueryFacts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Sentences worth telling: a restart, a changed plan, an end that had come before."""


class Caution(str):
    """A note about something that went wrong and may go right by itself."""

    __slots__ = ()


class Restart(Caution):
    """A query, or all of them, will start again after a pause."""

    query: str
    """Empty: all of them, with Spark itself."""
    reason: str
    attempt: int
    seconds: float

    def __new__(cls, query: str, reason: str, attempt: int, seconds: float) -> Restart:
        subject = f"query `{query}`: " if query else ""
        self = super().__new__(cls, f"{subject}{reason}; restart {attempt} in {seconds:g} s")
        self.query, self.reason, self.attempt, self.seconds = query, reason, attempt, seconds
        return self


class Recorder:
    """Adds facts up. Safe to use from the epochs' threads and the one that watches."""

    def __init__(self, pipeline: str) -> None:
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._snapshot = Snapshot(pipeline, "starting", 0.0)
        self._read: dict[str, dict[str, int | None]] = {}
        """source → query → rows read"""

    def snapshot(self) -> Snapshot:
        with self._lock:
            return replace(self._snapshot, seconds=time.monotonic() - self._started)

    def state(self, state: State) -> None:
        with self._lock:
            self._snapshot = replace(self._snapshot, state=state)

    def query_state(self, query: str, state: State) -> None:
        with self._lock:
            self._update(query, state=state)

    def note(self, text: str) -> None:
        with self._lock:
            self._snapshot = replace(self._snapshot, notes=(*self._snapshot.notes, text))

    def warn(self, text: str) -> None:
        """A note that an operator should look at."""
        self.note(Caution(text))

    def restart(self, why: Restart) -> None:
        """One query starts again or, when Spark itself does, all of them."""
        self.note(why)
        with self._lock:
            if why.query:
                self._update(why.query, state="restarting", restarts=self._query(why.query).restarts + 1)

    def read(self, query: str, rows: Mapping[str, int | None]) -> None:
        """Rows that came out of sources. Each query reads all of them: the one that has come farthest tells how many there were. A
        count that is missing once is missing for good.
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

    def speed(self, query: str, rows_per_second: float) -> None:
        with self._lock:
            self._update(query, rows_per_second=rows_per_second)

    def lag(self, query: str, seconds: float) -> None:
        with self._lock:
            self._update(query, lag_seconds=seconds)

    def epoch(self, facts: EpochFacts) -> None:
        with self._lock:
            for name, count in facts.rows_out.items():
                self._add(name, "sink", rows_in=count)
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
                skipped=before.skipped + len(facts.skipped),
                watermark=facts.watermark or before.watermark,
            )

    def set(self, name: str, kind: Kind | None = None, **values: object) -> None:
        """Facts of a node that are no sums: its state, what waits, what it promises."""
        with self._lock:
            before = self._snapshot.nodes.get(name, NodeFacts())
            after = replace(before, kind=kind or before.kind, **values)  # type: ignore[arg-type]  # the callers name fields of NodeFacts
            self._snapshot = replace(self._snapshot, nodes={**self._snapshot.nodes, name: after})

    def add(self, name: str, kind: Kind | None = None, **counts: int) -> None:
        """Counts of a node that are added up."""
        with self._lock:
            self._add(name, kind, **counts)

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
