"""Fills a dynamic table from the stream: the rows of an epoch are collected on the driver and written by key in one call.

The driver knows the order of rows: if several rows have the same key, the last one wins, the same one every time. A repeated epoch writes
the same rows again, which changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import Diagnostic, RunError, nearest
from millstream.lookups.table import TableSpec, open_store
from millstream.lookups.values import fit_keys
from millstream.plan.changelog import DELETE, op_of
from millstream.plan.lookup_tables import LookupTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fill(table: LookupTable, settled: tuple[TableSpec, pa.Schema], frame: DataFrame) -> int:
    """Write the rows of an epoch; returns the number of keys written or removed."""
    spec, schema = settled
    rows = frame.toArrow()
    if rows.num_columns == 1 and rows.column_names != [table.key]:
        rows = rows.rename_columns([table.key])
    latest = _latest(_conform(rows, schema, table), table.key)
    op = op_of(latest.column_names)
    gone = pc.equal(latest[op], DELETE) if op else None
    store = open_store(spec, schema)
    try:
        if gone is not None and pc.any(gone).as_py():
            store.delete(latest.filter(gone).select([table.key]))
        kept = latest if gone is None else latest.filter(pc.fill_null(pc.invert(gone), True))
        if kept.num_rows:
            store.put(kept.select(list(schema.names)))
    finally:
        store.close()
    return int(latest.num_rows)


def _conform(rows: pa.Table, schema: pa.Schema, table: LookupTable) -> pa.Table:
    """The table's columns in the table's types, and `_op` if there is one."""
    arrays: dict[str, Any] = {}
    for field in schema:
        if field.name not in rows.column_names:
            message = f"the query that fills `{table.name}` gives no column `{field.name}`"
            raise RunError(Diagnostic("MS134", message, help=nearest(field.name, rows.column_names)))
        column = rows[field.name].combine_chunks()
        arrays[field.name] = fit_keys(column, field.type, table.name) if field.name == table.key else _cast(column, field, table.name)
    if op := op_of(rows.column_names):
        arrays[op] = rows[op]
    return pa.table(arrays).filter(pc.is_valid(arrays[table.key]))


def _cast(column: pa.Array, field: pa.Field, table: str) -> pa.Array:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise RunError(Diagnostic("MS136", f"`{table}`: `{field.name}` is not a `{field.type}`: {error}")) from None


def _latest(rows: pa.Table, key: str) -> pa.Table:
    """The last of several rows with one key."""
    numbered = rows.append_column("_number", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(key).aggregate([("_number", "max")])["_number_max"]
    return rows.take(last)
