"""The rows of a small epoch, which go to the server as parameters of the statements that merge them: no table holds them in between.

The small way has the meaning of the staging tables. Rows that it cannot carry exactly, and rows that the staging table would refuse (a key
that is null), are staged by the workers instead, which also find the message.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.clients.postgres import quote_name
from millstream.connectors.postgres.write.columns import StagedColumn, to_staging_types
from millstream.connectors.postgres.write.text_forms import NoTextForm, array_texts
from millstream.plan.expressions import quote_column
from millstream.sql.catalyst.small_rows import SmallRows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIXED_BYTES = 16
"""What a value without a length counts."""
_ROW_BYTES = 256
"""An epoch of many short rows is large, too."""


@dataclass(frozen=True)
class GivenRows:
    """The rows, column by column."""

    columns: tuple[StagedColumn, ...]
    arrays: tuple[str, ...] = field(repr=False)
    """For each column an array in Postgres' text form."""
    count: int

    @cached_property
    def source(self) -> str:
        """A table expression with the columns of the staging table. The arrays are its parameters."""
        arrays = ", ".join(f"${place}::{_element(column)}[]" for place, column in enumerate(self.columns, 1))
        names = ", ".join(quote_name(column.name) for column in self.columns)
        values = ", ".join(f"{quote_name(column.name)}::{column.staged}" for column in self.columns)
        return f"(SELECT {values} FROM unnest({arrays}) AS p ({names})) AS g"


def _element(column: StagedColumn) -> str:
    """An array of arrays would be flattened: its elements travel as texts."""
    return "text" if _is_list(column) else column.staged


class SmallWay:
    """Decides for each epoch of a sink whether its rows are collected."""

    def __init__(self) -> None:
        self._columns: tuple[StagedColumn, ...] = ()
        self._small = self._of(())

    def is_open(self) -> bool:
        """Whether to collect the next epoch. Asked once for each."""
        return self._small.is_tried()

    def collect(self, frame: DataFrame, columns: tuple[StagedColumn, ...], key: tuple[str, ...]) -> GivenRows | None:
        """The rows of a frame. None: they must be staged in tables."""
        if columns != self._columns:
            self._columns, self._small = columns, self._of(columns)
        found = self._small.collect(frame)
        given = None if found is None else _given(found, columns, key)
        if found is not None and given is None:
            self._small.note_vain()
        return given

    def learn(self, rows: int, size: int) -> None:
        """Learn from an epoch that was staged in tables."""
        self._small.learn(max(size, rows * _ROW_BYTES))

    @staticmethod
    def _of(columns: tuple[StagedColumn, ...]) -> SmallRows:
        def build(frame: DataFrame) -> tuple[DataFrame, Column]:
            from pyspark.sql import functions as F

            return to_staging_types(frame, columns), F.expr(_size_of(columns))

        return SmallRows(build)


def _size_of(columns: tuple[StagedColumn, ...]) -> str:
    """The bytes of a row, about, in Spark's SQL."""
    sized = [column for column in columns if column.staged in {"text", "bytea"} or _is_list(column)]
    return " + ".join([str(_FIXED_BYTES * len(columns)), *(f"coalesce(octet_length({_sized(column)}), 0)" for column in sized)])


def _sized(column: StagedColumn) -> str:
    name = quote_column(column.name)
    return f"cast({name} AS string)" if _is_list(column) else name


def _is_list(column: StagedColumn) -> bool:
    return column.staged.endswith("[]")


def _given(table: pa.Table, columns: tuple[StagedColumn, ...], key: tuple[str, ...]) -> GivenRows | None:
    if any(table.column(name).null_count for name in key):
        return None
    try:
        return GivenRows(columns, array_texts(table), table.num_rows)
    except NoTextForm:
        return None
