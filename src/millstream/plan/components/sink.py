"""Sinks: options that are validated before a run, and a run object that writes.

A sink needs `open`, which returns a `SinkRun` with `stage` and `commit`: rows are staged, then committed together with the number of their
epoch, which the target's ledger stores. Optional abilities are the capabilities below: a run object has one when it has its methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from millstream.errors import Diagnostic
from millstream.plan.components.component import Component
from millstream.plan.components.context import NodeContext
from millstream.plan.components.lineage import Origins, unchanged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Guarantee = Literal["exactly_once", "at_least_once"]
Work = TypeVar("Work")
"""The data that a sink keeps between `stage` and `commit`."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The last epoch that a target holds."""

    epoch: int
    digest: str


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch (Spark: micro-batch), as a sink sees it. `query` and `sink` are the ledger's key; `digest` distinguishes two histories."""

    query: str
    sink: str
    number: int
    digest: str
    time: str
    repeatable: bool = False
    """Whether computing its rows again gives the same rows. If unknown, false."""
    accepts: bool = False
    """Whether a repeated epoch may have other rows."""
    planned_before: bool = False
    """Whether an earlier start planned it, so that an attempt may have written it."""
    before: LedgerEntry | None = None
    """The target's last known ledger entry in this run. An older one would mean that the target was rolled back."""


@dataclass(frozen=True, slots=True)
class Staged(Generic[Work]):
    """Rows that are written and not yet visible."""

    rows: int | None
    """None: the sink cannot count them."""
    work: Work
    reads: int = 1
    """How often the rows were computed for it."""
    bytes: int | None = None
    """The size of the rows as they are written. None: the sink does not know it."""


def rolled_back(epoch: Epoch, now: str = ", but no longer does") -> Diagnostic:
    """The target was restored or emptied during the run."""
    before = epoch.before.epoch if epoch.before else -1
    message = f"the target of sink `{epoch.sink}` was rolled back: it held epoch {before}{now}"
    help_ = "restore it, or run again with `--redeliver` or `--accept-target`"
    return Diagnostic("MS140", message, detail="the epoch was not written", help=help_)


class Sink(Component):
    """The options of a sink."""

    plugin_kind: ClassVar[str] = "sink"
    best: ClassVar[Guarantee] = "exactly_once"
    """The strongest guarantee that it supports."""
    commit_method: ClassVar[str] = ""
    """One sentence for the docs: how an epoch is committed exactly once."""
    holds_ledger: ClassVar[bool] = True
    """Whether the target itself stores the epoch that it holds. Otherwise the pipeline's store does."""
    carries_traces: ClassVar[bool] = False
    """Whether it passes on the column `traceparent` of traced records as a header."""
    target_rejects: ClassVar[bool] = False
    """Whether the target's contents decide which rows are rejects, so that a second attempt may decide otherwise."""

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        """What the columns of the target are made of, for lineage."""
        return unchanged(inputs)

    def open(self, context: NodeContext) -> SinkRun[Any]:
        """The run object that writes."""
        raise NotImplementedError

    @property
    def promise(self) -> Guarantee:
        """The guarantee with these options."""
        return self.best

    def takes_updates(self, key: tuple[str, ...]) -> bool:
        """Whether it can apply the changes of rows that have this key; empty: no key is known."""
        return True

    @property
    def updates_help(self) -> str:
        """What to change where it would apply changes otherwise than by their key; empty: it refuses them itself."""
        return ""

    @property
    def ledger_lasts(self) -> bool:
        """Whether a later run can read the target's ledger, so that a start can compare it."""
        return self.promise == "exactly_once"

    @property
    def address_text(self) -> str:
        """A short address of the target for messages; empty when it is obvious."""
        return ""

    @property
    def recalls_without_spark(self) -> bool:
        """Whether the ledger can be read without a Spark session, so that a finished job can be verified quickly."""
        return False

    @property
    def validates_rows(self) -> bool:
        """Whether the target can refuse rows, and the run object has `RejectsRows`."""
        return False

    @property
    def group(self) -> str:
        """Sinks of one group under one root commit an epoch together; empty: no group."""
        return ""


class SinkRun(Generic[Work]):
    """A sink during a run. State that must last from epoch to epoch is kept in its attributes."""

    def __init__(self, context: NodeContext) -> None:
        self.context = context

    def prepare(self, spark: SparkSession) -> None:
        """Called before the first epoch of every start: finish what an earlier run left unfinished."""

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[Work]:
        """Write the rows without making them visible."""
        raise NotImplementedError

    def commit(self, staged: Staged[Work], epoch: Epoch) -> None:
        """Make the rows visible, exactly once."""

    def abort(self, staged: Staged[Work], epoch: Epoch) -> None:
        """Remove what was staged."""

    def close(self) -> None:
        """Called at the end of the run."""


@runtime_checkable
class KeepsLedger(Protocol):
    """The target stores the epoch that it holds."""

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """The target's ledger entry. `epoch` is the one about to be written."""
        ...

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """The same at the start of a run, before anything is written. There is no session when the job is finished and the sink recalls
        without Spark.
        """
        ...


@runtime_checkable
class BeginsEpochs(Protocol):
    """The target may contain parts of an epoch that is not in the ledger, or its rows may already be fixed."""

    def has_begun(self, epoch: Epoch) -> bool: ...


@runtime_checkable
class RejectsRows(Protocol):
    """Knows which rows the target cannot take. Used where `on_error` is not `fail`; `stage` then receives the rows without rejects."""

    def with_rejects(self, frame: DataFrame) -> DataFrame:
        """The rows with the column `REJECT`, which is not null for rows that the target cannot take."""
        ...


@runtime_checkable
class KeepsLastPerKey(Protocol):
    """Needs only the last row of each key of an epoch."""

    def collapse_key(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The key; empty: all rows are needed."""
        ...


@runtime_checkable
class CommitsTogether(Protocol):
    """Can commit the rows of several sinks of one group at the same moment."""

    def commit_together(self, works: Sequence[tuple[Staged[Any], Epoch]]) -> None:
        """Called on one of them, with the work of all."""
        ...


@runtime_checkable
class StreamsRows(Protocol):
    """Can write without epochs, in real-time mode: at least once."""

    def stream(self, frame: DataFrame) -> DataStreamWriter: ...
