"""The metrics that a run exports, as a table: names by OpenTelemetry's conventions, and how to get each value from a snapshot.

Prometheus' name follows from it: dots become underscores, the unit is appended, and `_total` for a counter. A value that is not known is
absent, never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from millstream.inspector.health import Health
from millstream.observe.facts import NodeFacts, QueryFacts, Snapshot, StateFacts
from millstream.observe.histogram import Histogram

Kind = Literal["counter", "gauge", "histogram"]
Value = float | Histogram
STATUSES = ("starting", "running", "paused", "degraded", "stopping", "failed", "ended")


@dataclass(frozen=True, slots=True)
class Moment:
    """What values are computed from."""

    snapshot: Snapshot
    health: Health
    now: float
    """In seconds since 1970."""


Point = tuple[tuple[str, ...], Value]
"""The values of the labels, and the value."""


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """One metric."""

    name: str
    kind: Kind
    unit: str
    """As in Prometheus: `seconds`, `bytes`; a count of rows has none of its own."""
    labels: tuple[str, ...]
    description: str
    points: Callable[[Moment], Iterable[Point]]
    streamling: str = ""
    """The metric of Streamling that it takes the place of."""
    volley: str = ""

    @property
    def prometheus(self) -> str:
        """The name of its family: without `_total`, which a counter's samples have."""
        base = self.name.replace(".", "_")
        return base if not self.unit or base.endswith(self.unit) else f"{base}_{self.unit}"


def _of_nodes(value: Callable[[NodeFacts], float | None]) -> Callable[[Moment], Iterable[Point]]:
    def points(moment: Moment) -> Iterable[Point]:
        for name, facts in moment.snapshot.nodes.items():
            if (found := value(facts)) is not None:
                yield (name, facts.kind), found

    return points


def _counted(moment: Moment) -> Iterable[Point]:
    for name, facts in moment.snapshot.nodes.items():
        for counter, number in facts.counted.items():
            yield (name, facts.kind, counter), number


def _of_state(value: Callable[[StateFacts], float | None]) -> Callable[[Moment], Iterable[Point]]:
    return _of_nodes(lambda facts: None if facts.state is None else value(facts.state))


def _of_queries(value: Callable[[QueryFacts, Moment], Value | None]) -> Callable[[Moment], Iterable[Point]]:
    def points(moment: Moment) -> Iterable[Point]:
        for name, facts in moment.snapshot.queries.items():
            if (found := value(facts, moment)) is not None:
                yield (name,), found

    return points


def _status(moment: Moment) -> Iterable[Point]:
    return [((status,), float(status == moment.health.status)) for status in STATUSES]


_NODE, _QUERY = ("node", "kind"), ("query",)

METRICS: tuple[ExportedMetric, ...] = (
    ExportedMetric(
        "millstream.run.status", "gauge", "", ("status",), "1 for the status that the run has.", _status, "", "volley.pipeline.health"
    ),
    ExportedMetric(
        "millstream.run.uptime",
        "gauge",
        "seconds",
        (),
        "How long the run has lasted.",
        lambda moment: [((), moment.snapshot.seconds)],
        "",
        "volley.pipeline.uptime_seconds",
    ),
    ExportedMetric(
        "millstream.node.rows.in",
        "counter",
        "",
        _NODE,
        "Rows that a sink has committed.",
        _of_nodes(lambda facts: facts.rows_in),
        "input_rows",
        "volley.sink.records_written",
    ),
    ExportedMetric(
        "millstream.node.rows.out",
        "counter",
        "",
        _NODE,
        "Rows that a source has read, or a transform has returned.",
        _of_nodes(lambda facts: facts.rows_out),
        "output_rows",
        "volley.source.records_polled, volley.records.processed",
    ),
    ExportedMetric(
        "millstream.node.rows.rejected",
        "counter",
        "",
        _NODE,
        "Rows that a node could not handle.",
        _of_nodes(lambda facts: facts.rejected),
        "",
        "volley.errors, volley.source.errors, volley.sink.errors",
    ),
    ExportedMetric(
        "millstream.node.rows.late",
        "counter",
        "",
        _NODE,
        "Rows that arrived after their result had closed.",
        _of_nodes(lambda facts: facts.late),
    ),
    ExportedMetric(
        "millstream.node.rows.lost",
        "counter",
        "",
        _NODE,
        "Rows that the source's system deleted before they were read.",
        _of_nodes(lambda facts: facts.lost),
    ),
    ExportedMetric(
        "millstream.node.counted",
        "counter",
        "",
        (*_NODE, "counter"),
        "What a plugin counts itself.",
        _counted,
    ),
    ExportedMetric(
        "millstream.node.rows.waiting",
        "gauge",
        "",
        _NODE,
        "Rows that a source had and no epoch had read, when the last one was planned.",
        _of_nodes(lambda facts: facts.waiting),
        "kafka_consumer_messages_lag",
        "volley.kafka.consumer_lag",
    ),
    ExportedMetric(
        "millstream.node.lookup.hits", "counter", "", _NODE, "Rows for which a lookup found a match.", _of_nodes(lambda facts: facts.hits)
    ),
    ExportedMetric(
        "millstream.node.lookup.misses",
        "counter",
        "",
        _NODE,
        "Rows for which a lookup found no match.",
        _of_nodes(lambda facts: facts.misses),
    ),
    ExportedMetric(
        "millstream.node.state.rows",
        "gauge",
        "",
        _NODE,
        "Keys, or rows of a join, in the state of a node.",
        _of_state(lambda state: state.rows),
        "",
        "volley.window.pending_size",
    ),
    ExportedMetric(
        "millstream.node.state.memory",
        "gauge",
        "bytes",
        _NODE,
        "Memory that the state of a node takes.",
        _of_state(lambda state: state.memory_bytes),
    ),
    ExportedMetric(
        "millstream.node.state.disk",
        "gauge",
        "bytes",
        _NODE,
        "Size of the state's files, where the state store says it.",
        _of_state(lambda state: state.disk_bytes),
    ),
    ExportedMetric(
        "millstream.sink.bytes",
        "counter",
        "bytes",
        _NODE,
        "Size of the rows that a sink has committed, as they are written.",
        _of_nodes(lambda facts: facts.bytes_in),
    ),
    ExportedMetric(
        "millstream.sink.epochs",
        "counter",
        "",
        _NODE,
        "Epochs that a sink has committed.",
        _of_nodes(lambda facts: facts.epochs),
        "checkpoint_epochs_succeeded",
        "",
    ),
    ExportedMetric(
        "millstream.query.epochs",
        "counter",
        "",
        _QUERY,
        "Epochs that a query has finished.",
        _of_queries(lambda facts, _: facts.epochs),
        "checkpoint_markers_sent",
        "",
    ),
    ExportedMetric(
        "millstream.query.epoch",
        "gauge",
        "",
        _QUERY,
        "The number of the last finished epoch.",
        _of_queries(lambda facts, _: facts.last_epoch),
        "",
        "volley.checkpoint.epoch",
    ),
    ExportedMetric(
        "millstream.query.epoch.duration",
        "histogram",
        "seconds",
        _QUERY,
        "From the start of an epoch's work to its last commit.",
        _of_queries(lambda facts, _: facts.durations if facts.epochs else None),
        "checkpoint_epoch_duration",
        "volley.checkpoint.duration_ms",
    ),
    ExportedMetric(
        "millstream.query.progress.age",
        "gauge",
        "seconds",
        _QUERY,
        "Since the last epoch has finished.",
        _of_queries(lambda facts, moment: max(0.0, moment.now - facts.last_at) if facts.last_at else None),
    ),
    ExportedMetric(
        "millstream.query.lag",
        "gauge",
        "seconds",
        _QUERY,
        "How long the rows of the running epoch have waited for their commit.",
        _of_queries(lambda facts, _: facts.lag_seconds),
        "node_wait_milliseconds_total",
        "volley.stage.latency_ms",
    ),
    ExportedMetric(
        "millstream.query.watermark.lag",
        "gauge",
        "seconds",
        _QUERY,
        "From the watermark to the clock.",
        _of_queries(lambda facts, _: facts.watermark.lag_seconds if facts.watermark else None),
        "event_time_lag",
        "volley.watermark.lag_ms",
    ),
    ExportedMetric(
        "millstream.query.watermark",
        "gauge",
        "seconds",
        _QUERY,
        "The watermark, in seconds since 1970.",
        _of_queries(lambda facts, _: facts.watermark.at_ms / 1000 if facts.watermark else None),
        "event_time_watermark",
        "",
    ),
    ExportedMetric(
        "millstream.query.restarts",
        "counter",
        "",
        _QUERY,
        "Restarts after temporary failures.",
        _of_queries(lambda facts, _: facts.restarts),
        "checkpoint_epochs_failed",
        "volley.checkpoint.failures",
    ),
    ExportedMetric(
        "millstream.query.epochs.skipped",
        "counter",
        "",
        _QUERY,
        "Epochs that a sink held already when they were repeated.",
        _of_queries(lambda facts, _: facts.skipped),
    ),
)
