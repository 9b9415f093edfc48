"""Packs rows for a bucket, and unpacks them again, as Arrow IPC in binary columns.

Spark passes rows to a stateful Python function one by one. So the rows of each bucket are packed into a few large blobs before the shuffle,
and the function's output is packed and unpacked in the same way: Spark moves a few binary values, and the types stay Arrow's. Each blob has
its task and number, so that a repeated epoch has its rows in the same order. This module is pickled to the workers (`pickling.py`), so it
imports nothing of Millstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BUCKET, NOW = "_bucket", "_now"
PACKED = "_bucket int, part int, number int, now long, rows binary"
UNPACKED = "rows binary"
_ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Packer:
    """Packs rows into one blob per bucket."""

    rows_at_once: int = _ROWS_AT_ONCE

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number, held, rows = 0, list[pa.RecordBatch](), 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= self.rows_at_once:
                yield self._pack(held, number)
                number, held, rows = number + 1, [], 0
        if rows:
            yield self._pack(held, number)

    def _pack(self, batches: list[pa.RecordBatch], number: int) -> pa.RecordBatch:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        table = pa.Table.from_batches(batches).combine_chunks()
        buckets = table[BUCKET].to_numpy()
        now = table[NOW][0].as_py()
        order = np.argsort(buckets, kind="stable")
        found, starts = np.unique(buckets[order], return_index=True)
        rows = table.drop_columns([BUCKET, NOW]).take(pa.array(order))
        ends = [*starts[1:], len(order)]
        blobs = [to_bytes(rows.slice(start, end - start)) for start, end in zip(starts, ends, strict=True)]
        count = len(blobs)
        columns = [found.astype("int32"), np.full(count, part, "int32"), np.full(count, number, "int32"), np.full(count, now, "int64")]
        return pa.RecordBatch.from_arrays(
            [*map(pa.array, columns), pa.array(blobs, pa.binary())], [BUCKET, "part", "number", "now", "rows"]
        )


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the blobs."""
    for batch in batches:
        for blob in batch.column(0):
            yield from from_bytes(blob.as_buffer()).to_batches()


def in_order(blobs: Iterable[Any]) -> tuple[pa.Table, int]:
    """The rows of a bucket in the order in which they were packed, and the epoch's time in microseconds."""
    packed = sorted(blobs, key=lambda row: (row["part"], row["number"]))
    return pa.concat_tables([from_bytes(row["rows"]) for row in packed]), packed[0]["now"]


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


def from_bytes(blob: Any) -> pa.Table:
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()


def codes(tables: Sequence[pa.Table], keys: Sequence[str]) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """A number per row of each table, equal for equal keys; numbers count from 0 without gaps."""
    combined: np.ndarray[Any, np.dtype[np.int64]] | None = None
    for key in keys:
        chunks = [chunk for table in tables for chunk in table[key].chunks]
        encoded = pa.chunked_array(chunks, tables[0].schema.field(key).type).combine_chunks().dictionary_encode()
        numbers = np.asarray(encoded.indices, dtype=np.int64)
        if combined is None:
            combined = numbers
        else:  # compact after each step: the product of many columns would not fit
            combined = np.unique(combined * max(1, len(encoded.dictionary)) + numbers, return_inverse=True)[1].astype(np.int64)
    assert combined is not None
    cuts = np.cumsum([table.num_rows for table in tables])[:-1]
    return list(np.split(combined, cuts))


def sort_by(table: pa.Table, group: np.ndarray[Any, Any], columns: Sequence[str]) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """The rows sorted by group, then by these columns, then by arrival; and the group numbers in that order."""
    name = "_group"
    keyed = table.append_column(name, pa.array(group))
    order = pc.sort_indices(keyed, sort_keys=[(column, "ascending") for column in (name, *columns)])
    return table.take(order).combine_chunks(), group[np.asarray(order)]
