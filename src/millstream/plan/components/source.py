"""Sources: what the engine asks of them, from the first look at a schema to the offset that every query has committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.clients.storage import Storage
from millstream.plan.components.component import Component
from millstream.plan.components.context import ChangedInput, NodeContext, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Source(Component):
    """Where rows come from."""

    @property
    def dear(self) -> bool:
        """Whether reading twice costs more than keeping what was read."""
        return True

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
        """Whether rows of committed epochs can be read again, as long as they are there."""
        return True

    @property
    def self_ending(self) -> bool:
        """Whether Spark's available-now trigger finds the end; else `exhausted` tells."""
        return True

    @property
    def at_once(self) -> bool:
        """Whether Spark's available-now trigger takes one epoch from it and no more."""
        return False

    @property
    def poll_interval_ms(self) -> int:
        """The shortest time between two looks for new input."""
        return 0

    @property
    def small(self) -> bool:
        """Whether a bounded input is over in seconds, so that a quick start matters more than throughput."""
        return False

    def output(self) -> pa.Schema | None:
        """The schema, or None when it takes a look at the data: `discover`."""
        return None

    def discover(self, spark: SparkSession, context: NodeContext) -> pa.Schema:
        """Look at the data; the result is pinned in the checkpoint."""
        raise NotImplementedError

    @property
    def previews(self) -> bool:
        """Whether the schema is not declared, and `preview` may know it."""
        return False

    def preview(self, context: NodeContext) -> pa.Schema | None:
        """What `discover` would find, asked without Spark and within two seconds; nothing is written."""
        return None

    def read(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        raise NotImplementedError

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        """All rows that are there now, as a plain frame."""
        raise NotImplementedError

    def exhausted(self, offset: Any, context: NodeContext | None = None) -> bool:
        """Whether a bounded source ends at or before this offset. The engine gives the context: an end may be pinned there."""
        return False

    def learns(self, text: str, context: NodeContext) -> bool:
        """Whether a query's failure told the source something that it has looked up by now, so that the same rows will pass. The query
        is started again at once, and that counts as no restart.
        """
        return False

    def key_columns(self, context: NodeContext) -> tuple[str, ...]:
        """The primary key that the data names by itself, once the schema is known; it stands for one that the user does not give."""
        return ()

    def rows_read(self, progress: Progress, context: NodeContext) -> int | None:
        """How many rows an epoch got from it: by its offsets where they tell, else as Spark counted; None when nobody knows."""
        return progress.seen

    @property
    def may_lose(self) -> bool:
        """Whether it goes on when rows are gone before they were read, and `lost` tells how many."""
        return False

    def lost(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> int:
        """How many rows between two offsets are gone."""
        return 0

    def changed(self, spark: SparkSession, notes: Storage, start: Any, end: Any, context: NodeContext) -> list[ChangedInput]:
        """What lies between two offsets and is not as it was when they were planned. `notes` is Spark's folder for the
        source in the query's checkpoint. Asked before an epoch is repeated.
        """
        return []

    def find_bad(self, spark: SparkSession, start: Any, end: Any, context: NodeContext) -> str:
        """The first row between two offsets that does not fit, as a sentence with its place; empty when it cannot be told."""
        return ""

    def parts(self, spark: SparkSession, context: NodeContext) -> int | None:
        """How many parts are read side by side; None when that does not matter."""
        return None

    def waiting(self, offset: Any, latest: Any) -> int | None:
        """How many rows lie between an offset and the last one that there is; None when offsets do not tell."""
        return None

    def reached(self, several: Sequence[Any]) -> Any:
        """The offset that all of several readers have come to; None when it cannot be told."""
        return several[0] if all(offset == several[0] for offset in several) else None

    def committed(self, spark: SparkSession, offset: Any, context: NodeContext) -> None:
        """Called once every query that reads the source has committed up to the offset, in a thread of its own. What it raises is noted
        and does no harm: this offset, or a later one, comes again.
        """
