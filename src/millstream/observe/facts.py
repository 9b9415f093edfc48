"""Counts of a run, per node, query and epoch.

They come from the reports of Spark and of the sinks: no Spark job runs only for a count. What is not counted is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from millstream.observe.histogram import Histogram
from millstream.observe.metrics import Kind, metric, plural

State = Literal["starting", "running", "flushing", "restarting", "stopping", "done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class WatermarkFacts:
    """The watermark of a query."""

    at_ms: int
    """The watermark, in milliseconds since 1970."""
    lag_seconds: float
    """The distance to the wall clock."""
    slowest: str
    """The input with the smallest watermark."""
    spread_seconds: float = 0.0
    """The distance to the input with the largest watermark."""


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """What one operator of an incremental query keeps."""

    kind: str
    key: str
    """The columns by which it works; empty if it works row by row."""
    rows: int
    bytes: int
    """In memory, and on the local disks for what does not fit."""
    changed: int
    """Rows that it added and removed in the last epoch."""


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The state of a query."""

    rows: int
    """Number of keys, or of rows in a join."""
    memory_bytes: int
    disk_bytes: int | None = None
    """Size of the state's files, if the state store reports it."""
    operators: tuple[OperatorFacts, ...] = ()
    """Of an incremental query: those that keep rows, and the state of what Spark's stream computes of it."""

    def __str__(self) -> str:
        return f"{plural(self.rows, 'row')}, {self.memory_bytes >> 20:,} MB"


@dataclass(frozen=True, slots=True)
class OwnCounts(Mapping[str, int]):
    """What a plugin counts itself: counter → number."""

    counts: tuple[tuple[str, int], ...] = ()

    def plus(self, more: Mapping[str, int]) -> OwnCounts:
        summed = dict(self.counts) | {name: self.get(name, 0) + number for name, number in more.items()}
        return OwnCounts(tuple(sorted(summed.items())))

    def __getitem__(self, name: str) -> int:
        return dict(self.counts)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.counts))

    def __len__(self) -> int:
        return len(self.counts)

    def __str__(self) -> str:
        return ", ".join(f"{name} {number:,}" for name, number in self.counts)


@dataclass(frozen=True, slots=True)
class EpochFacts:
    """The results of one epoch."""

    query: str
    number: int
    seconds: float
    rows_out: Mapping[str, int]
    """sink → rows committed"""
    rejected: Mapping[str, int]
    """node → rejects"""
    skipped: tuple[str, ...] = ()
    """Sinks whose target had the epoch already."""
    committed: tuple[str, ...] = ()
    """Sinks that have committed the epoch."""
    late: Mapping[str, int] = field(default_factory=dict)
    """node → late rows"""
    watermark: WatermarkFacts | None = None
    lost: Mapping[str, int] = field(default_factory=dict)
    """source → rows that the system deleted before they were read"""
    bytes_out: Mapping[str, int] = field(default_factory=dict)
    """sink → bytes committed"""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Totals of one node in this run; None means not counted. A metric is one field here, and one call of `Recorder.add`."""

    kind: Kind = "transform"
    guarantee: str = ""
    """The guarantee of a sink."""
    rows_in: int | None = metric(None, "rows in", report="always", column="always", phrase={"sink": "wrote {}"}, total={"sink": "written"})
    rows_out: int | None = metric(
        None, "rows out", report="always", column="always", phrase={"source": "read {}", "transform": "passed {}"}, total={"source": "read"}
    )
    rejected: int = metric(0, "rejected", report="always", column="always", unit="rejected row", phrase="{}", warning=True)
    late: int = metric(0, "late", report="always", column="when not zero", unit="late row", phrase="{}", total="late", warning=True)
    """Rows that arrived after their result had closed."""
    state: StateFacts | None = metric(None, "state", report="when known", column="when known", phrase="state: {}")
    bytes_in: int | None = metric(None, "bytes in", unit="byte", report="when known")
    """The size of the rows that a sink has committed, as they are written."""
    epochs: int | None = metric(None, "epochs", unit="epoch", report="when known")
    """Epochs that a sink has committed."""
    waiting: int | None = metric(None, "waiting", report="when known", column="when known", total="waiting")
    """Rows that the source had and no epoch had read, when the last epoch was planned."""
    lost: int = metric(0, "lost", unit="message", phrase="{} lost before reading")
    """Rows that the system deleted before they were read."""
    hits: int | None = metric(None, "hits", unit="hit", report="when known", phrase="{}")
    """Rows for which a lookup found a match."""
    misses: int | None = metric(None, "misses", unit="row", report="when known", phrase="{} without a match")
    """Rows for which a lookup found no match."""
    counted: OwnCounts = metric(OwnCounts(), "counted", report="when not zero", column="when not zero", phrase="{}")
    """What a plugin counts itself."""


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Totals of one query in this run."""

    epochs: int = 0
    last_epoch: int | None = None
    last_seconds: float = 0.0
    last_at: float = 0.0
    """When the last epoch finished, in seconds since 1970."""
    durations: Histogram = Histogram()
    """The seconds of all epochs."""
    skipped: int = 0
    restarts: int = 0
    rows_per_second: float = 0.0
    lag_seconds: float = 0.0
    """How long the rows of the running epoch have waited for their commit; 0 between epochs."""
    watermark: WatermarkFacts | None = None
    state: State = "starting"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The facts of a run at one moment."""

    pipeline: str
    state: State
    seconds: float
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    queries: Mapping[str, QueryFacts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """Messages for the user, such as a restart, a changed plan, or a job that was done already."""
    jvm: int | None = None
    """The process of the JVM that this run has started."""


class Caution(str):
    """A note that is a warning."""

    __slots__ = ()


class Restart(Caution):
    """A note that one query or all queries will start again after a pause."""

    query: str
    """The name of the query; empty when Spark and all queries start again."""
    reason: str
    attempt: int
    seconds: float
    code: str
    """The code of the failure."""

    def __new__(cls, query: str, reason: str, attempt: int, seconds: float, code: str = "") -> Restart:
        subject = f"query `{query}`: " if query else ""
        self = super().__new__(cls, f"{subject}{reason}; restart {attempt} in {seconds:g} s")
        self.query, self.reason, self.attempt, self.seconds, self.code = query, reason, attempt, seconds, code
        return self
