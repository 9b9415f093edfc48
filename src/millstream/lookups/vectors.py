"""Runs SQL's functions on dynamic tables in the workers: Arrow arrays in, one Arrow array out, one lookup per batch.

Null rules: a null value gives null. An array is found when any of its elements is; null elements do not count; an empty array is not found.
A failure is raised with our diagnostic in a note, for the driver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.lookups.reader import Found, reader_of
from millstream.lookups.table import TableSpec, Verb
from millstream.worker.remote_errors import carry_errors


@dataclass(frozen=True)
class TableFunction:
    """One function on one table."""

    spec: TableSpec
    schema: pa.Schema
    verb: Verb

    @property
    def returns(self) -> pa.DataType:
        if self.verb == "check":
            return pa.bool_()
        row = pa.struct(list(self.schema)[0 if self.verb == "rows" else 1 :])
        return row if self.verb == "get" else pa.list_(row)

    def __call__(self, values: pa.Array) -> pa.Array:
        with carry_errors():
            reader = reader_of(self.spec, self.schema)
            if self.verb == "check" and pa.types.is_list(values.type):
                return _any(values, reader.find(values.values).positions)
            found = reader.find(values)
            if self.verb == "check":
                return pc.if_else(pc.is_valid(values), pc.is_valid(found.positions), None)
            return self._structs(found) if self.verb == "get" else self._lists(found)

    def _structs(self, found: Found) -> pa.Array:
        rows = found.rows.select(found.rows.column_names[1:]).cast(pa.schema(list(self.returns)))
        return pc.take(_structs(rows, self.returns), found.positions)

    def _lists(self, found: Found) -> pa.Array:
        """One list per key: its row, or empty."""
        there = pc.is_valid(found.positions)
        row = self.returns.value_type
        values = pc.take(_structs(found.rows.cast(pa.schema(list(row))), row), found.positions.drop_null())
        ends = np.cumsum(there.to_numpy(zero_copy_only=False), dtype=np.int32)
        return pa.ListArray.from_arrays(pa.array(np.concatenate([np.zeros(1, np.int32), ends]), pa.int32()), values, type=self.returns)


def _structs(rows: pa.Table, kind: pa.DataType) -> pa.Array:
    return pa.StructArray.from_arrays([column.combine_chunks() for column in rows.columns], fields=list(kind))


def _any(lists: pa.Array, positions: pa.Array) -> pa.Array:
    """Whether any element of each list was found."""
    there = np.concatenate([np.zeros(1, np.int64), np.cumsum(positions.is_valid().to_numpy(zero_copy_only=False))])
    offsets = lists.offsets.to_numpy()
    return pc.if_else(pc.is_valid(lists), pa.array(there[offsets[1:]] > there[offsets[:-1]]), None)
