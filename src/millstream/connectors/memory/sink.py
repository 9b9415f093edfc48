"""Rows brought back to Python, by epoch: an epoch that is repeated replaces itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pydantic import PrivateAttr

from millstream.plan.components import Epoch, LedgerEntry, Sink, Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class _Store:
    """What has arrived. It is no part of a sink's identity: two sinks with the same options are the same plan."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str, int], tuple[str, pa.Table]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Store)

    def __hash__(self) -> int:
        return 0

    def __deepcopy__(self, memo: dict[int, Any]) -> _Store:
        return self


class MemorySink(Sink):
    """Keeps rows in the memory of the Python process: for tests, notebooks and `collect()`. What it holds ends with the process."""

    type: ClassVar[str] = "memory"
    summary: ClassVar[str] = "Keep rows in memory, for Python programs and tests."
    example: ClassVar[str] = """
        result:
          type: memory
          from: orders
    """

    _store: _Store = PrivateAttr(default_factory=_Store)

    @property
    def answers(self) -> bool:
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

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        held = [(number, digest) for (query, sink, number), (digest, _) in self._store.tables.items() if (query, sink) == _key(epoch)]
        return LedgerEntry(*max(held)) if held else None

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        table = frame.toArrow()
        return Staged(table.num_rows, table)

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        self._store.tables[*_key(epoch), epoch.number] = (epoch.digest, staged.payload)


def _key(epoch: Epoch) -> tuple[str, str]:
    return epoch.query, epoch.sink
