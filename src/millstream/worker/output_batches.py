"""Converts the results of a process function into batches of one schema: the main columns, a hidden column for side outputs, and
rejects.

The hidden column is null for main rows; for a row of a side output it is a struct with the row under the output's name, and the main
columns are null. Dicts are collected and converted together, which makes functions fast that yield rows one by one. This module is pickled
to the workers (`pickling.py`), so it imports only modules of Millstream that are pickled too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.worker.batches import REJECT, REJECT_TYPE, WrongResultError, WrongValueError, fit_batch
from millstream.worker.masking import hide

SIDE = "_side"
Emitted = tuple[str, Any]
"""The name of an output ("" is the main one), and a dict or a batch."""


@dataclass(frozen=True)
class OutputShape:
    """The schemas of all outputs."""

    main: pa.Schema
    sides: Mapping[str, pa.Schema]
    isolate: bool
    hidden: tuple[str, ...] = ()
    """Values of secrets, which must not appear in rejects."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the node's output frame."""
        schema = self.main.append(pa.field(SIDE, self.side_type))
        return schema.append(pa.field(REJECT, REJECT_TYPE)) if self.isolate else schema

    @property
    def side_type(self) -> pa.DataType:
        fields = [pa.field(name, pa.struct(list(schema))) for name, schema in self.sides.items()]
        return pa.struct(fields or [pa.field("none", pa.bool_())])

    def collect(self, result: Any) -> list[Emitted]:
        """The results of one call, with the outputs' names. A generator runs here."""
        if result is None:
            return []
        if isinstance(result, dict | pa.RecordBatch | pa.Table) or _is_pair(result):
            result = (result,)
        if not isinstance(result, Iterable) or isinstance(result, str | bytes):
            raise WrongResultError(f"expected rows, got {type(result).__name__}")
        return [self._with_output_name(item) for item in result]

    def _with_output_name(self, item: Any) -> Emitted:
        name, row = item if _is_pair(item) else ("", item)
        if name and name not in self.sides:
            known = ", ".join(f"`{side}`" for side in self.sides) or "none"
            raise WrongResultError(f"there is no output `{name}`; declared: {known}")
        schema = self.sides[name] if name else self.main
        if isinstance(row, dict):
            if row.keys() != set(schema.names):
                raise WrongResultError(f"expected the columns {_join_names(schema.names)}, got {_join_names(row)}")
        elif not isinstance(row, pa.RecordBatch | pa.Table):
            raise WrongResultError(f"expected a dict or a RecordBatch, got {type(row).__name__}")
        return name, row

    def batches(self, emitted: Iterable[Emitted]) -> list[pa.RecordBatch]:
        """Rows in the node's schema."""
        rows: dict[str, list[dict[str, Any]]] = {}
        batches: list[pa.RecordBatch] = []
        for name, item in emitted:
            if isinstance(item, dict):
                rows.setdefault(name, []).append(item)
            else:
                parts = item.to_batches() if isinstance(item, pa.Table) else [item]
                batches += [self._to_node_schema(name, fit_batch(part, self._schema(name))) for part in parts]
        return batches + [self._to_node_schema(name, _batch(found, self._schema(name))) for name, found in rows.items()]

    def rejects(self, rows: Iterable[Any], error: str) -> list[pa.RecordBatch]:
        """Input rows as rejects."""
        found = [{"raw": json.dumps(row, default=str, ensure_ascii=False), "error": hide(error, self.hidden)} for row in rows]
        nulls = [pa.nulls(len(found), field.type) for field in (*self.main, pa.field(SIDE, self.side_type))]
        return [pa.RecordBatch.from_arrays([*nulls, pa.array(found, REJECT_TYPE)], schema=self.schema)] if found else []

    def _schema(self, name: str) -> pa.Schema:
        return self.sides[name] if name else self.main

    def _to_node_schema(self, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        count = batch.num_rows
        rejects = [pa.nulls(count, REJECT_TYPE)] if self.isolate else []
        if not name:
            return pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(count, self.side_type), *rejects], schema=self.schema)
        row = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        sides = [row if field.name == name else pa.nulls(count, field.type) for field in self.side_type]
        side = pa.StructArray.from_arrays(sides, fields=list(self.side_type))
        return pa.RecordBatch.from_arrays([*(pa.nulls(count, kind) for kind in self.main.types), side, *rejects], schema=self.schema)


def _batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column([row[field.name] for row in rows], field) for field in schema], schema=schema)


def column(values: list[Any], field: pa.Field) -> pa.Array:
    """Python values as the field's type."""
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise WrongValueError(f"expected `{field.name}` as {field.type}: {error}") from None


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
