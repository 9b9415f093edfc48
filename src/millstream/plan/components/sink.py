"""Sinks: rows are staged, then committed together with the number of their epoch, which the target's ledger holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from millstream.plan.components.component import Component
from millstream.plan.components.context import NodeContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Guarantee = Literal["exactly_once", "at_least_once"]


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


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The last epoch that a target holds."""

    epoch: int
    digest: str


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows that are written and not yet visible."""

    rows: int | None
    """None: the sink cannot tell."""
    payload: Any = field(default=None)


class Sink(Component):
    """Where rows go: staged first, then committed together with the epoch's number."""

    best: ClassVar[Guarantee] = "exactly_once"
    """What it can promise at most."""
    holds_ledger: ClassVar[bool] = True
    """Whether the target can tell which epoch it holds. Where it cannot, the pipeline's store keeps that."""
    judges: ClassVar[bool] = False
    """Whether there are rows that the target cannot take and `judged` can tell."""

    @property
    def promise(self) -> Guarantee:
        """What it promises with these options."""
        return self.best

    @property
    def group(self) -> str:
        """Sinks of one group, under one root, commit an epoch together; empty: on its own."""
        return ""

    def collapses(self, columns: Iterable[str], context: NodeContext) -> tuple[str, ...]:
        """The key by which each epoch is collapsed to its last rows before it is staged; empty: every row counts."""
        return ()

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        """Once, before the first epoch: finish what an earlier run left half done."""

    def ledger(self, spark: SparkSession, epoch: Epoch) -> LedgerEntry | None:
        """What the target says it holds."""
        return None

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
