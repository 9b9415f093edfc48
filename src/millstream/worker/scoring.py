"""Scores whole Arrow batches with a model in Python's worker processes.

A row that the model cannot take (a null, a vector of another length, a number out of range) is found before the call, and one whose result
is not a number after it, so that no call is repeated for the other rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.worker import marks
from millstream.worker.archives import forget_archives
from millstream.worker.batches import REJECT, REJECT_TYPE, TRACED
from millstream.worker.masking import hide
from millstream.worker.models import Model, ModelError, Tensor, kept_model

ROW = "MS212"
Rows = dict[int, str]
"""Row → why it cannot be scored."""


class CallError(ValueError):
    """The model failed on a batch."""


class Sent(Protocol):
    """What Spark has sent to all workers: the bytes of the model."""

    @property
    def value(self) -> bytes: ...


@dataclass(frozen=True)
class Score:
    """A column of the result: an output of the model, or one of its values per row."""

    column: str
    output: str
    place: int | None


@dataclass(frozen=True)
class ModelRunner:
    """One node's work on the batches of a task."""

    node: str
    digest: str
    content: Sent
    inputs: tuple[tuple[str, tuple[str, ...]], ...]
    """Input of the model → columns."""
    scores: tuple[Score, ...]
    schema: pa.Schema
    """The columns that are added."""
    batch_size: int | None
    threads: int
    isolate: bool
    op: str
    """The column with the op of a changelog's row; empty if there is none."""
    hidden: tuple[str, ...]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            model = kept_model(self.digest, self.threads, lambda: self.content.value)
            for batch in batches:
                size = self.batch_size or max(1, batch.num_rows)
                for start in range(0, batch.num_rows, size):
                    yield from self._results(model, batch.slice(start, size))
        finally:
            forget_archives()

    def _results(self, model: Model, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch with its scores. Where the model itself fails on some row, the batch is halved until that row is found."""
        try:
            yield self._result(model, batch)
        except CallError as error:
            if not self.isolate:
                raise ModelError(f"{marks.refusal('MS210', self.node, 'model')}{error}") from None
            if batch.num_rows == 1:
                yield self._with_scores(batch, [pa.nulls(1, field.type) for field in self.schema], {0: str(error)})
                return
            half = batch.num_rows // 2
            yield from self._results(model, batch.slice(0, half))
            yield from self._results(model, batch.slice(half))

    def _result(self, model: Model, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its scores, in one call of the model."""
        left_out = self._deletes_without_input(batch)
        bad = {row: reason for row, reason in self._unusable(model, batch).items() if row not in left_out}
        if left_out or bad:
            scored = np.setdiff1d(np.arange(batch.num_rows), [*left_out, *bad])
            found = self._score(model, batch.take(pa.array(scored))) if len(scored) else [pa.nulls(0, field.type) for field in self.schema]
        else:
            scored, found = np.arange(batch.num_rows), self._score(model, batch)
        bad |= {int(scored[row]): reason for row, reason in _not_numbers(found, self.schema.names).items()}
        if bad and not self.isolate:
            row = min(bad)
            raise ModelError(f"{marks.refusal(ROW, self.node, 'inputs')}{bad[row]}, in the row {self._text(batch, row)}")
        if left_out or bad:
            found = _at_places(found, scored, bad, batch.num_rows)
        return self._with_scores(batch, found, bad)

    def _with_scores(self, batch: pa.RecordBatch, found: list[pa.Array], bad: Rows) -> pa.RecordBatch:
        columns, names = [*batch.columns, *found], [*batch.schema.names, *self.schema.names]
        if self.isolate:
            columns.append(self._rejects(batch, bad))
            names.append(REJECT)
        return pa.RecordBatch.from_arrays(columns, names)

    def _unusable(self, model: Model, batch: pa.RecordBatch) -> Rows:
        bad: Rows = {}
        for name, columns in self.inputs:
            for column in columns:
                bad = _unusable_values(batch.column(column), column, model.inputs[name]) | bad
        return bad

    def _deletes_without_input(self, batch: pa.RecordBatch) -> set[int]:
        """Deletes of a changelog may have only their key: they have no score."""
        if not self.op:
            return set()
        columns = [column for _, columns in self.inputs for column in columns]
        empty = np.logical_or.reduce([pc.is_null(batch.column(column)).to_numpy(zero_copy_only=False) for column in columns])
        deletes = pc.fill_null(pc.equal(batch.column(self.op), "d"), False).to_numpy(zero_copy_only=False)
        return set(np.flatnonzero(empty & deletes).tolist())

    def _score(self, model: Model, rows: pa.RecordBatch) -> list[pa.Array]:
        """The scores of usable rows. Rows whose vectors have other lengths are another call."""
        lengths = [
            pc.list_value_length(rows.column(columns[0])).to_numpy()
            for name, columns in self.inputs
            if model.inputs[name].width is None and _is_list(rows.schema.field(columns[0]).type)
        ]
        if not lengths:
            return self._call(model, rows)
        kinds, group = np.unique(np.stack(lengths), axis=1, return_inverse=True)
        group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        parts = [self._call(model, rows.take(pa.array(np.flatnonzero(group == kind)))) for kind in range(kinds.shape[1])]
        back = pa.array(np.argsort(order))
        return [pa.concat_arrays(columns).take(back) for columns in zip(*parts, strict=True)]

    def _call(self, model: Model, rows: pa.RecordBatch) -> list[pa.Array]:
        feed = {name: _tensor([rows.column(column) for column in columns], model.inputs[name]) for name, columns in self.inputs}
        names = list(dict.fromkeys(score.output for score in self.scores))
        try:
            values = dict(zip(names, model.session.run(names, feed), strict=True))
        except Exception as error:  # noqa: BLE001 — the runtime's exceptions have no class in common
            said = hide(str(error).strip().splitlines()[0], self.hidden)
            raise CallError(f"the model failed: {said}") from None
        return [self._column(score, values[score.output], rows.num_rows) for score in self.scores]

    def _column(self, score: Score, values: Any, rows: int) -> pa.Array:
        given, kind = np.asarray(values), self.schema.field(score.column).type
        if not given.shape or given.shape[0] != rows:
            said = f"the model returned `{score.output}` with the shape {list(given.shape)} for {rows} rows"
            raise ModelError(f"{marks.refusal('MS210', self.node, 'model')}{said}")
        flat = given.reshape(rows, -1)
        if score.place is not None:
            return pa.array(flat[:, score.place], kind)
        if not pa.types.is_list(kind):
            return pa.array(flat[:, 0], kind)
        offsets = np.arange(0, flat.size + 1, flat.shape[1] or 1, dtype=np.int32) if flat.size else np.zeros(rows + 1, np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat.reshape(-1), kind.value_type))

    def _rejects(self, batch: pa.RecordBatch, bad: Rows) -> pa.Array:
        if not bad:
            return pa.nulls(batch.num_rows, REJECT_TYPE)
        found: list[dict[str, str] | None] = [None] * batch.num_rows
        for row, reason in bad.items():
            found[row] = {"raw": self._text(batch, row), "error": reason}
        return pa.array(found, REJECT_TYPE)

    def _text(self, batch: pa.RecordBatch, row: int) -> str:
        values = {name: value for name, value in batch.slice(row, 1).to_pylist()[0].items() if name != TRACED}
        return hide(json.dumps(values, default=str, ensure_ascii=False), self.hidden)


def _at_places(found: list[pa.Array], scored: Any, bad: Rows, rows: int) -> list[pa.Array]:
    """The scores at the places of their rows; null for the others."""
    places = np.full(rows, -1)
    places[scored] = np.arange(len(scored))
    places[list(bad)] = -1
    take = pa.array(places, mask=places < 0)
    return [column.take(take) for column in found]


def _unusable_values(values: pa.Array, column: str, tensor: Tensor) -> Rows:
    """The rows of a column that an input cannot take."""
    bad = dict.fromkeys(_places(pc.is_null(values)), f"`{column}` is null, and the model needs a value") if values.null_count else {}
    if not _is_list(values.type):
        return _out_of_range(values, column, tensor) | bad
    inner = pc.list_flatten(values)
    if outside := _out_of_range(inner, column, tensor):
        rows = pc.list_parent_indices(values).take(pa.array(list(outside)))
        bad = dict(zip(rows.to_pylist(), outside.values(), strict=True)) | bad
    if inner.null_count:
        holes = pc.list_parent_indices(values).filter(pc.is_null(inner))
        bad = dict.fromkeys(holes.to_pylist(), f"`{column}` contains a null, and the model needs a value") | bad
    if tensor.width is not None:
        lengths = pc.list_value_length(values)
        for row in _places(pc.not_equal(lengths, tensor.width)):
            bad.setdefault(row, f"`{column}` has {lengths[row]} values, and the model takes {tensor.width}")
    return bad


def _out_of_range(values: pa.Array, column: str, tensor: Tensor) -> Rows:
    """Integers that the model's smaller integers cannot hold."""
    if tensor.type is None or not pa.types.is_integer(tensor.type) or tensor.type.equals(values.type):
        return {}
    changed = pc.not_equal(pc.cast(pc.cast(values, tensor.type, safe=False), values.type, safe=False), values)
    return {row: f"`{column}` is {values[row]}, and the model takes {tensor.type}" for row in _places(changed)}


def _tensor(columns: list[pa.Array], tensor: Tensor) -> Any:
    """The values of usable rows in the form of the model's input."""
    assert tensor.type is not None
    kind: Any = np.object_ if pa.types.is_string(tensor.type) else tensor.type.to_pandas_dtype()
    parts = [_numbers(column, kind) for column in columns]
    if len(parts) > 1:
        return np.column_stack(parts)
    (values,) = parts
    rows = len(columns[0])
    inner = [length if length is not None else -1 for length in tensor.shape[1:]]
    return values.reshape([rows, *inner]) if len(tensor.shape) != 1 else values


def _numbers(column: pa.Array, kind: Any) -> Any:
    flat = pc.list_flatten(column) if _is_list(column.type) else column
    if pa.types.is_decimal(flat.type):
        flat = flat.cast(pa.float64())
    return flat.to_numpy(zero_copy_only=False).astype(kind, copy=False)


def _not_numbers(found: list[pa.Array], names: list[str]) -> Rows:
    bad: Rows = {}
    for name, column in zip(names, found, strict=True):
        inner = pc.list_flatten(column) if pa.types.is_list(column.type) else column
        if not pa.types.is_floating(inner.type) or not pc.any(pc.is_nan(inner)).as_py():
            continue
        rows = pc.list_parent_indices(column).filter(pc.is_nan(inner)) if inner is not column else pa.array(_places(pc.is_nan(column)))
        bad = dict.fromkeys(rows.to_pylist(), f"`{name}` is not a number") | bad
    return bad


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _places(mask: pa.Array) -> list[int]:
    found: list[int] = np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False)).tolist()
    return found
