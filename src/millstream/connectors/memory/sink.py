"""Collects rows in Python, by epoch: a repeated epoch replaces itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pydantic import PrivateAttr

from millstream.plan.components import Epoch, LedgerEntry, NodeContext, Sink, SinkRun, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class _Store:
    """The collected rows. They are not part of a sink's identity: two sinks with the same options are equal plans."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str, int], tuple[str, pa.Table]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Store)

    def __hash__(self) -> int:
        return 0

    def __deepcopy__(self, memo: dict[int, Any]) -> _Store:
        return self


class MemorySink(Sink):
    """Keeps rows in the memory of the Python process: for tests, notebooks and `collect()`. They end with the process."""

    type: ClassVar[str] = "memory"
    summary: ClassVar[str] = "Keep rows in memory, for Python programs and tests."
    commit_method: ClassVar[str] = "rows are kept in the process, by epoch"
    example: ClassVar[str] = """
        result:
          type: memory
          from: orders
    """

    _store: _Store = PrivateAttr(default_factory=_Store)

    @property
    def ledger_lasts(self) -> bool:
        return False

    def table(self) -> pa.Table:
        """All rows, in the order of their epochs."""
        held = self._store.tables
        tables = [table for _, (_, table) in sorted(held.items(), key=lambda item: item[0])]
        return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})

    def rows(self) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        rows: list[dict[str, Any]] = self.table().to_pylist()
        return rows

    def open(self, context: NodeContext) -> MemorySinkRun:
        return MemorySinkRun(self._store, context)


class MemorySinkRun(SinkRun[pa.Table]):
    """Keeps each epoch as an Arrow table."""

    def __init__(self, store: _Store, context: NodeContext) -> None:
        super().__init__(context)
        self._tables = store.tables

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        held = [(number, digest) for (query, sink, number), (digest, _) in self._tables.items() if (query, sink) == _key(epoch)]
        return LedgerEntry(*max(held)) if held else None

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        return self.ledger(spark, epoch)

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[pa.Table]:
        table = frame.toArrow()
        return Staged(table.num_rows, table)

    def commit(self, staged: Staged[pa.Table], epoch: Epoch) -> None:
        self._tables[*_key(epoch), epoch.number] = (epoch.digest, staged.work)


def _key(epoch: Epoch) -> tuple[str, str]:
    return epoch.query, epoch.sink
