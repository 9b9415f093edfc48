"""Sources: options that are validated before a run, and a run object that reads.

A source needs `output`, its schema, and `open`, which returns a `SourceRun` whose `read` returns a streaming DataFrame. Everything else has
a default. Optional abilities are the capabilities below: a run object has one when it has its methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from millstream.clients.storage import Storage
from millstream.plan.changelog import op_of
from millstream.plan.components.component import Component
from millstream.plan.components.context import ChangedInput, NodeContext, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Source(Component):
    """The options of a source."""

    plugin_kind: ClassVar[str] = "source"
    readable_as_table: ClassVar[bool] = False
    """Whether its run object has `ReadsAsTable`, so that a join can read it as a table."""
    keyless: ClassVar[bool] = False
    """Whether its run object never has `NamesKey`: the rows of a changelog then have the key that the user declares, or none."""

    @property
    def emits_changes(self) -> bool:
        """Whether its rows are a changelog, as far as that is known without reading any."""
        schema = self.output()
        return schema is not None and bool(op_of(schema.names))

    def output(self) -> pa.Schema | None:
        """The schema, or None when only the data has it: see `SourceRun.discover`."""
        return None

    def open(self, context: NodeContext) -> SourceRun:
        """The run object that reads."""
        raise NotImplementedError

    @property
    def bounded(self) -> bool:
        """Whether the input ends."""
        return False

    @property
    def deterministic(self) -> bool:
        """Whether reading the same offsets again gives the same rows."""
        return True

    @property
    def rereads(self) -> bool:
        """Whether rows of committed epochs can be read again while they still exist."""
        return True

    @property
    def expensive(self) -> bool:
        """Whether reading twice costs more than caching the rows."""
        return True

    @property
    def small(self) -> bool:
        """Whether a bounded input takes only seconds, so that a quick start matters more than throughput."""
        return False

    @property
    def poll_interval_ms(self) -> int:
        """The shortest interval between two polls for new input."""
        return 0

    @property
    def available_now(self) -> bool:
        """Whether Spark's available-now trigger finds the end of a bounded input; else the run has `EndsAtOffset`."""
        return True

    @property
    def single_epoch(self) -> bool:
        """Whether Spark's available-now trigger takes one epoch from it and no more."""
        return False


class SourceRun:
    """A source during a run. State that must last from epoch to epoch is kept in its attributes."""

    def __init__(self, context: NodeContext) -> None:
        self.context = context

    def read(self, spark: SparkSession) -> DataFrame:
        """The streaming frame."""
        raise NotImplementedError

    def discover(self, spark: SparkSession) -> pa.Schema:
        """Find the schema in the data; the checkpoint pins it. Called where `Source.output` is None."""
        raise NotImplementedError

    def rows_read(self, progress: Progress) -> int | None:
        """The number of rows in an epoch: from its offsets if possible, else as Spark counted; None when unknown."""
        return progress.seen

    def close(self) -> None:
        """Called at the end of the run."""


@runtime_checkable
class Previews(Protocol):
    """Can find its schema without Spark."""

    def preview(self) -> pa.Schema | None:
        """The schema that `discover` would find, within two seconds and without writing. None: unknown."""
        ...


@runtime_checkable
class NamesKey(Protocol):
    """The data declares a primary key."""

    def key_columns(self) -> tuple[str, ...]:
        """The key, once the schema is known; used when the user declares none."""
        ...


@runtime_checkable
class EndsAtOffset(Protocol):
    """Detects the end of a bounded input from an offset."""

    def is_exhausted(self, offset: Any) -> bool: ...


@runtime_checkable
class ReportsLag(Protocol):
    """Computes from offsets how far a query is behind."""

    def rows_waiting(self, offset: Any, latest: Any) -> int | None:
        """The number of rows between an offset and the latest one; None when the offsets do not show it."""
        ...


@runtime_checkable
class HearsCommits(Protocol):
    """Is informed about committed offsets: to delete messages, advance a slot or commit group offsets."""

    def common_offset(self, several: Sequence[Any]) -> Any:
        """The offset that all these readers have reached; None when unknown."""
        ...

    def on_commit(self, spark: SparkSession, offset: Any) -> None:
        """Every query that reads the source has committed up to the offset. Called in a separate thread. A failure is only noted: this
        offset, or a later one, is reported again.
        """
        ...


@runtime_checkable
class LosesRows(Protocol):
    """May continue when rows no longer exist before they were read."""

    @property
    def may_lose(self) -> bool: ...

    def count_lost(self, spark: SparkSession, start: Any, end: Any) -> int:
        """The number of rows between two offsets that no longer exist."""
        ...


@runtime_checkable
class DetectsChanges(Protocol):
    """Detects changes in a planned epoch's input. Used before an epoch is repeated."""

    def find_changes(self, spark: SparkSession, log: Storage, start: Any, end: Any) -> list[ChangedInput]:
        """The parts between two offsets that changed since they were planned. `log` is Spark's log of the source."""
        ...


@runtime_checkable
class FindsRejects(Protocol):
    """Finds the row that made a query fail."""

    def find_reject(self, spark: SparkSession, start: Any, end: Any) -> str:
        """The first row between two offsets that does not fit, as a sentence with its position; empty when unknown."""
        ...


@runtime_checkable
class LearnsFromFailures(Protocol):
    """Can fetch missing information after a failure, so that a retry succeeds."""

    def learn(self, failure: str) -> bool:
        """Whether it has new information: the query then restarts at once, which does not count as a restart."""
        ...


@runtime_checkable
class Partitioned(Protocol):
    """Knows how many partitions are read in parallel."""

    def partitions(self, spark: SparkSession) -> int: ...


@runtime_checkable
class ReadsAsTable(Protocol):
    """Can be read as a table by a join."""

    def table(self, spark: SparkSession) -> DataFrame:
        """All current rows, as a batch frame."""
        ...
