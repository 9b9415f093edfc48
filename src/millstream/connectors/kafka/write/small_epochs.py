"""The messages of a small epoch in the driver."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream.clients.storage import Storage
from millstream.jvm.file_writer import Written
from millstream.plan.changelog import SEQUENCE
from millstream.sql.catalyst.small_rows import SMALL_BYTES

_FILE_BYTES = SMALL_BYTES // 4
"""Files are compressed."""


def read_files(storage: Storage, folder: str, written: Written) -> pa.Table | None:
    """The rows that were written to a folder; None if they are not small."""
    if written.bytes > _FILE_BYTES:
        return None
    names = [name for name in storage.files(folder) if name.endswith(".parquet")]
    parts = [pq.read_table(pa.BufferReader(storage.read(f"{folder}/{name}") or b"")) for name in names]
    return pa.concat_tables(parts) if parts else None


def in_source_order(messages: pa.Table) -> pa.Table:
    """In the order of the source, if rows have it, then in that of the frame. Rows without a position come first, as in Spark."""
    order = [name for name in (SEQUENCE, "place") if name in messages.column_names]
    if not order:
        return messages
    keys = messages.select(order).append_column("known", pc.is_valid(messages.column(order[0])))
    return messages.take(pc.sort_indices(keys, [(name, "ascending") for name in ("known", *order)]))
