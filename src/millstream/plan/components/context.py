"""The context of a node that `open` receives when a run begins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.store.protocol import Namespace
from millstream.worker.plugin_tasks import Metrics, NoMetrics

if TYPE_CHECKING:
    from millstream.clients.storage import Storage
    from millstream.plan.components.transform import TransformRun


def _no_key() -> tuple[str, ...]:
    return ()


def _no_tables(name: str) -> TransformRun:
    raise KeyError(name)


def _no_record(text: str) -> None:
    return None


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class NodeContext:
    """A node's position in the pipeline and in the run."""

    name: str
    directory: Path
    """Where the pipeline's own files are."""
    storage: Storage
    """The node's folder in the checkpoint."""
    isolate: bool = False
    """Whether rejects must be returned in `REJECT` instead of failing."""
    schema: pa.Schema | None = None
    """A source's pinned schema."""
    clock: str = ""
    """The epoch's time, for `now()`. Set while a transform is applied to an epoch."""
    event_times: Mapping[str, str] = field(default_factory=dict)
    """Input → the column that holds its event time. Set while a transform is applied."""
    aggregates: tuple[str, ...] = ()
    """The user's aggregate functions, which SQL calls by collecting lists."""
    relational: bool = False
    """Whether frames are whole tables: the result must be too, without `_op`."""
    whole_rows: bool = False
    """Whether the changes of the inputs are whole rows: an update is a delete of the old row and an insert of the new one."""
    dry: bool = False
    """Whether the plan is only analysed or previewed: nothing may be created or written."""
    traced: bool = False
    """Whether records of a source are traced: it reads `traceparent` from headers, and says in `POSITION` where a record is if it can."""
    real_time: bool = False
    """Whether the pipeline runs in real-time mode."""
    pipeline: str = ""
    """The pipeline's name."""
    find_key: Callable[[], tuple[str, ...]] = field(default=_no_key, repr=False, compare=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """Values of secrets: user code may read them, messages must not show them."""
    store: Namespace | None = field(default=None, repr=False, compare=False)
    """Named values of the node, stored with the pipeline; None when there is no store."""
    record_sql: Callable[[str], None] = field(default=_no_record, repr=False, compare=False)
    """Called with each SQL text that the node passes to Spark, so that a failure can be reported at this node."""
    find_table: Callable[[str], TransformRun] = field(default=_no_tables, repr=False, compare=False)
    """Dynamic table → its run."""
    metrics: Metrics = field(default_factory=NoMetrics, repr=False, compare=False)
    """Counters of the node, which the report and the inspector show."""
    is_stopping: Callable[[], bool] = field(default=_never, repr=False, compare=False)
    """Whether the run has been asked to stop. A loop that waits for something asks this."""

    @property
    def logger(self) -> logging.Logger:
        """Writes to stderr under the node's name."""
        return logging.getLogger(f"millstream.{self.name}")

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns that identify a row: the node's own, or inherited ones. Known after the nodes above are built."""
        return self.find_key()

    @property
    def event_time(self) -> str:
        """The event-time column of the first input; empty when none is declared."""
        return next(iter(self.event_times.values()), "")


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """A part of a planned epoch's input that has changed since the epoch was planned."""

    name: str
    gone: bool

    def __str__(self) -> str:
        return f"{self.name} {'is gone' if self.gone else 'was changed'}"


@dataclass(frozen=True, slots=True)
class Progress:
    """Facts about a source in one finished epoch."""

    start: Any
    """The start offset; None for the first epoch."""
    end: Any
    seen: int | None
    """Rows that Spark counted in one scan; None when its count is not a whole number of scans."""
    pushed: bool
    """Whether steps may have been pushed into the scan, so that the scan returns fewer rows than the input has."""
    log: Storage
    """Spark's own log of the source, in the query's checkpoint."""
