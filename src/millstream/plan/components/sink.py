"""Sinks: rows are staged, then committed together with the number of their epoch, which the target's ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from millstream.errors import Diagnostic
from millstream.plan.components.component import Component
from millstream.plan.components.context import NodeContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Guarantee = Literal["exactly_once", "at_least_once"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The last epoch that a target holds."""

    epoch: int
    digest: str


@dataclass(frozen=True, slots=True)
class Epoch:
    """One micro-batch, as a sink sees it. `query` and `sink` are the ledger's key, `digest` tells two histories apart."""

    query: str
    sink: str
    number: int
    digest: str
    time: str
    context: NodeContext | None = field(default=None, repr=False, compare=False)
    """The sink's place in the pipeline; the engine gives it."""
    repeatable: bool = False
    """Whether computing its rows again gives the same rows. When in doubt, it does not."""
    accepts: bool = False
    """Whether a repeated epoch may have other rows than it had."""
    before: LedgerEntry | None = None
    """What the target held when this run looked last. Less would mean that it went back since."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows that are written and not yet visible."""

    rows: int | None
    """None: the sink cannot tell."""
    payload: Any = field(default=None)


def went_back(epoch: Epoch, now: str = ", and no longer does") -> Diagnostic:
    """A target that was restored or emptied while the run went on."""
    before = epoch.before.epoch if epoch.before else -1
    message = f"the target of sink `{epoch.sink}` went back: it held epoch {before}{now}"
    help_ = "restore it, or run again with `--redeliver` or `--accept-target`"
    return Diagnostic("MS140", message, detail="the epoch was not written", help=help_)


class Sink(Component):
    """Where rows go: staged first, then committed together with the epoch's number."""

    best: ClassVar[Guarantee] = "exactly_once"
    """What it can promise at most."""
    holds_ledger: ClassVar[bool] = True
    """Whether the target can tell which epoch it holds. Where it cannot, the pipeline's store keeps that."""
    judges_by_target: ClassVar[bool] = False
    """Whether the target's contents decide which rows it can take, so that asking twice may give two answers."""

    @property
    def promise(self) -> Guarantee:
        """What it promises with these options."""
        return self.best

    @property
    def answers(self) -> bool:
        """Whether the target can tell in a later run which epoch it holds, so that a start can compare."""
        return self.promise == "exactly_once" and type(self).ledger is not Sink.ledger

    @property
    def place(self) -> str:
        """Where the target is, in a few words, for messages; empty where that is plain."""
        return ""

    @property
    def recalls_alone(self) -> bool:
        """Whether `recall` needs no Spark session, so that the target of a job that is done can be asked in a moment."""
        return False

    @property
    def judges(self) -> bool:
        """Whether there can be rows that the target cannot take and `judged` can tell."""
        return False

    @property
    def group(self) -> str:
        """Sinks of one group, under one root, commit an epoch together; empty: on its own."""
        return ""

    def collapses(self, columns: Iterable[str], context: NodeContext) -> tuple[str, ...]:
        """The key by which each epoch is collapsed to its last rows before it is staged; empty: every row counts."""
        return ()

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        """Once, before the first epoch: finish what an earlier run left half done."""

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """What the target says it holds."""
        return None

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        """The same, asked when a run begins and nothing is to be written yet. `epoch` is the next one. There is no session when the
        sink recalls alone and the job is done.
        """
        return self.ledger(spark, epoch)

    def has_begun(self, epoch: Epoch) -> bool:
        """Whether parts of an epoch that the ledger does not hold may be in the target, or its rows are fixed already."""
        return False

    def judged(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        """The rows with the column `REJECT`, which is not null for those that the target cannot take. Asked when `on_error` is not `fail`;
        `stage` then gets the rows without a reject.
        """
        raise NotImplementedError

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        raise NotImplementedError

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        """Make the rows visible, once."""

    def commit_together(self, works: Sequence[tuple[Staged, Epoch]]) -> None:
        """Make the rows of all sinks of a group visible at the same moment, once. Asked of one of them."""
        raise NotImplementedError

    def abort(self, staged: Staged, epoch: Epoch) -> None:
        """Remove what was staged."""

    def stream(self, frame: DataFrame, context: NodeContext) -> DataStreamWriter:
        """Spark's own writer, for queries without epochs: at least once."""
        raise NotImplementedError
