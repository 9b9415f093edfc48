"""Epochs as values, and the status of a loop: what its query reads from another thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from millstream.checkpoint.layout import OffsetEntry
from millstream.observe.watches import Watched
from millstream.plan.cutting import QueryPlan

_START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class PlannedEpoch:
    """An epoch that Spark has planned, and the plan that runs it."""

    number: int
    entry: OffsetEntry
    plan: QueryPlan
    accepts: bool
    """Whether its rows may differ from those at an earlier start."""

    @property
    def planned_at(self) -> float:
        """In seconds of the clock."""
        return self.entry.time_ms / 1000

    @property
    def clock(self) -> str:
        """The value of `now()` in this epoch."""
        return datetime.fromtimestamp(self.planned_at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


@dataclass(frozen=True, slots=True)
class FinishedEpoch:
    """An epoch that every sink has committed, with its end offset in each source."""

    number: int
    offsets: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Epochs that an earlier start planned: their inputs are compared before they are read again."""

    epoch: int | None = None
    """The epoch that an earlier start did not finish."""
    accepts: bool = False
    """Whether the rows of that epoch may differ now."""
    missing: Mapping[str, range] | None = None
    """During redelivery: sink → the epochs that it lacks. Other sinks receive nothing."""

    @property
    def redelivers(self) -> bool:
        return self.missing is not None

    def compares(self, number: int) -> bool:
        """Whether the inputs of an epoch must be the same as before."""
        return self.redelivers or (number == self.epoch and not self.accepts)

    def skips(self, sink: str, number: int) -> bool:
        """Whether a sink does not lack an epoch that is delivered again."""
        return self.missing is not None and number not in self.missing.get(sink, ())


@dataclass
class LoopStatus:
    """How far a loop has come. The loop writes it, and the thread that watches the query reads it."""

    current_node: str = ""
    """A failure is reported at this node."""
    failure: BaseException | None = None
    abandoned: bool = False
    """Whether the query is being stopped, so that no epoch may begin any more."""
    refused: bool = False
    """Whether an epoch was refused because the run is stopping."""
    planned_at: float | None = None
    """When the epoch in progress was planned; None between epochs."""
    finished: FinishedEpoch | None = None
    """The last epoch that every sink has committed. Spark writes its own commit right after it."""
    committed: FinishedEpoch | None = None
    """The last epoch that Spark has committed too, known because the next epoch has begun."""
    last_epoch: int | None = None
    """The epoch after which a bounded input has no more rows."""
    watched: tuple[Watched, ...] = ()
    """What is sampled in the running epoch."""
    usual: deque[float] = field(default_factory=lambda: deque(maxlen=9))
    """The seconds of the last epochs in which nothing was sampled."""
    scans: dict[int, int | None] = field(default_factory=dict)
    """epoch → how often its root was read: the divisor of Spark's own input count"""


class QueryHandle:
    """Spark's query, as its own epochs see it: the first epoch may begin before the call that starts the query returns."""

    def __init__(self) -> None:
        self._query: Any = None
        self._started = threading.Event()

    def set(self, query: Any) -> None:
        self._query = query
        self._started.set()

    def get(self) -> Any:
        """The query; waits until it has started."""
        self._started.wait(_START_SECONDS)
        return self._query

    def clear(self) -> None:
        """Break the reference cycle between Spark's query and the loop, so that both collectors can free them."""
        self._query = None
