"""The report of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from millstream.observe.facts import NodeFacts, QueryFacts, Snapshot, State
from millstream.observe.metrics import metrics_of


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The last snapshot of a run, and the duration of its phases."""

    snapshot: Snapshot
    checkpoint: str
    times: Mapping[str, float] = field(default_factory=dict)
    """phase → seconds: import, jvm, session, first epoch, stop"""

    def __str__(self) -> str:
        """The run in one line."""
        line = f"{self.pipeline} {self.state} in {self.seconds:.1f} s, epochs: {self.epochs}, rows written: {self.rows_written}"
        return "; ".join([line, *self.notes])

    def __repr__(self) -> str:
        return f"Report({self})"

    @property
    def pipeline(self) -> str:
        return self.snapshot.pipeline

    @property
    def state(self) -> State:
        return self.snapshot.state

    @property
    def seconds(self) -> float:
        return self.snapshot.seconds

    @property
    def nodes(self) -> Mapping[str, NodeFacts]:
        return self.snapshot.nodes

    @property
    def queries(self) -> Mapping[str, QueryFacts]:
        return self.snapshot.queries

    @property
    def notes(self) -> tuple[str, ...]:
        return self.snapshot.notes

    @property
    def epochs(self) -> int:
        return sum(query.epochs for query in self.queries.values())

    @property
    def rows_read(self) -> int:
        """Rows that the sources delivered."""
        return sum(facts.rows_out or 0 for facts in self.nodes.values() if facts.kind == "source")

    @property
    def rows_written(self) -> int:
        """Rows that the sinks committed."""
        return sum(facts.rows_in or 0 for facts in self.nodes.values())

    def as_dict(self) -> dict[str, object]:
        """The report as plain data, for `--format json`."""
        return {
            "pipeline": self.pipeline,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "epochs": self.epochs,
            "checkpoint": self.checkpoint,
            "nodes": {name: _node(facts) for name, facts in self.nodes.items()},
            "queries": {
                name: {
                    "epochs": q.epochs,
                    "last_epoch": q.last_epoch,
                    "state": q.state,
                    "skipped": q.skipped,
                    "restarts": q.restarts,
                    **({"watermark": asdict(q.watermark)} if q.watermark else {}),
                }
                for name, q in self.queries.items()
            },
            "notes": list(self.notes),
            "times": {phase: round(seconds, 3) for phase, seconds in self.times.items()},
        }


def _node(facts: NodeFacts) -> dict[str, object]:
    counts = {metric.name: metric.plain(facts) for metric in metrics_of(NodeFacts) if metric.is_shown(facts, metric.report)}
    return counts | ({"epochs": facts.epochs or 0, "guarantee": facts.guarantee} if facts.guarantee else {})
