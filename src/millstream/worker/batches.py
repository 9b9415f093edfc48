"""Runs a function over whole Arrow batches in Python's worker processes, and checks its results against the schema.

This module is pickled with the function (`pickling.py`), so it imports only modules that are pickled too. Notes on its exceptions name the
function that failed (`marks.py`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.worker import marks
from millstream.worker.archives import forget_archives
from millstream.worker.masking import hide, mask

REJECT = "_reject"
TRACED = "_traceparent"
"""The context of traced records, which the function does not see."""
REJECT_TYPE = pa.struct([pa.field("raw", pa.string()), pa.field("error", pa.string())])


class WrongResultError(TypeError):
    """The function returned something that does not match its schema."""


class WrongValueError(WrongResultError):
    """A value does not fit its column's type."""


@dataclass(frozen=True)
class BatchRunner:
    """One node's function and what is needed to call it."""

    function: Callable[[pa.RecordBatch], Any]
    node: str
    schema: pa.Schema
    batch_size: int | None
    isolate: bool
    directory: str
    kept: tuple[str, ...] = ()
    """Input columns that stay with their rows."""
    hidden: tuple[str, ...] = ()
    """Values of secrets, which must not appear in errors."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All results, batch by batch."""
        if self.directory not in sys.path:  # for modules that the function imports while it runs
            sys.path.insert(0, self.directory)
        try:
            for batch in self._resize(batches):
                yield from self._isolate(batch) if self.isolate else self._results(batch)
        except Exception as error:
            told = mask(error, self.hidden)
            told.add_note(marks.write(marks.NODE, self.node))
            if isinstance(error, WrongResultError):
                told.add_note(marks.write(marks.WRONG_SCHEMA, str(error)))
            if told is not error:
                raise told from None
            raise
        finally:
            forget_archives()

    def _resize(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            size = self.batch_size or max(1, batch.num_rows)
            yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))

    def _results(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        given = batch.drop_columns([TRACED]) if TRACED in self.kept else batch
        results = (fit_batch(result, self.schema) for result in iter_batches(self.function(given)))
        yield from self._with_kept(batch, list(results)) if self.kept else results

    def _with_kept(self, batch: pa.RecordBatch, results: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(result.num_rows for result in results)
        changes = [name for name in self.kept if name != TRACED]
        if changes and rows != batch.num_rows:
            said = f"{batch.num_rows} rows of a changelog went in and {rows} came out: return {_join_names(changes)} too"
            raise WrongResultError(said)
        start = 0
        for result in results:
            columns = [batch.column(name).slice(start, result.num_rows) for name in changes]
            if TRACED in self.kept:  # traces end where it is not known which row has become which
                own = batch.column(TRACED).slice(start, result.num_rows)
                columns.append(own if rows == batch.num_rows else pa.nulls(result.num_rows, own.type))
            yield pa.RecordBatch.from_arrays([*result.columns, *columns], [*result.schema.names, *self.kept])
            start += result.num_rows

    def _isolate(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The results of valid rows, and the others as rejects: the batch is halved until the failing rows are found."""
        try:
            results = list(self._results(batch))
        except Exception as error:
            if isinstance(error, WrongResultError) and not isinstance(error, WrongValueError):
                raise  # this is not the fault of a row
            if batch.num_rows > 1:
                half = batch.num_rows // 2
                yield from self._isolate(batch.slice(0, half))
                yield from self._isolate(batch.slice(half))
            else:
                yield self._reject(batch, hide(f"{type(error).__name__}: {error}", self.hidden))
        else:
            yield from (with_reject(result) for result in results)

    def _reject(self, batch: pa.RecordBatch, error: str) -> pa.RecordBatch:
        row = {name: value for name, value in batch.to_pylist()[0].items() if name != TRACED}
        raw = json.dumps(row, default=str, ensure_ascii=False)
        fields = [*self.schema, *(batch.schema.field(name) for name in self.kept)]
        nulls = [pa.nulls(1, field.type) for field in fields]
        reject = pa.array([{"raw": raw, "error": error}], REJECT_TYPE)
        return pa.RecordBatch.from_arrays([*nulls, reject], [*(field.name for field in fields), REJECT])


def iter_batches(result: Any) -> Iterator[pa.RecordBatch]:
    """The batches in a function's result: one batch, a table, or an iterable of batches."""
    if isinstance(result, pa.RecordBatch):
        yield result
    elif isinstance(result, pa.Table):
        yield from result.to_batches()
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes | dict):
        for item in result:
            yield from iter_batches(item) if isinstance(item, pa.RecordBatch | pa.Table) else _refuse(item)
    else:
        _refuse(result)


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in the schema's order and types, if no value is lost."""
    if batch.schema.equals(schema):
        return batch
    if sorted(batch.schema.names) != sorted(schema.names):
        raise WrongResultError(f"expected the columns {_join_names(schema.names)}, got {_join_names(batch.schema.names)}")
    return pa.RecordBatch.from_arrays([_cast(batch.column(field.name), field) for field in schema], schema=schema)


def with_reject(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, REJECT_TYPE)], [*batch.schema.names, REJECT])


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        kind = WrongValueError if isinstance(error, pa.ArrowInvalid) else WrongResultError
        raise kind(f"expected `{field.name}` as {field.type}, got {column.type}: {error}") from None


def _refuse(result: Any) -> Any:
    raise WrongResultError(f"expected a RecordBatch, got {type(result).__name__}")


def _join_names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
