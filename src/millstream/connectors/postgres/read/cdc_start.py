"""Starts change data capture of a table: refuses what cannot work, creates or finds slot and publication, and pins the start."""

from __future__ import annotations

import re
import zlib

from millstream.clients.postgres import NAME_BYTES
from millstream.connectors.postgres.read.catalog import TableInfo, reading_address
from millstream.connectors.postgres.read.changes import Changes, Start, pin_start, pinned_start
from millstream.connectors.postgres.read.options import CdcMode, PostgresSourceOptions
from millstream.connectors.postgres.read.rows import ChangeShape
from millstream.connectors.postgres.read.slots import Names, prepare
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import NodeContext

_TABLES = {"r", "p"}


def start_changes(options: PostgresSourceOptions, mode: CdcMode, table: TableInfo, context: NodeContext) -> Changes:
    """The reader of a table's changes, ready to be read."""
    key = _key(table, context)
    slot = mode.slot or slot_name(context.pipeline, context.name)
    names = Names(slot, mode.publication or slot, table.schema, table.name)
    address, known = reading_address(options, read_only=False), pinned_start(context.storage)
    found = prepare(address, names, table, mode.create, known is not None)
    columns = {column.name: column.number for column in table.columns}
    others = [column.name for column in table.every if column.name not in columns]
    start = known or pin_start(context.storage, Start(names.slot, names.publication, found.confirmed, columns, others))
    shape = ChangeShape(f"{table.schema}.{table.name}", table.arrow, key, options.unchanged)
    snapshot, all_columns = mode.snapshot == "initial", not options.columns
    what = (options.truncate, options.on_schema_change, all_columns)
    return Changes(address, table, names, shape, start, context.storage.url, snapshot, *what, durable=context.storage.durable)


def slot_name(pipeline: str, source: str) -> str:
    """A valid Postgres name; a truncated one ends with a checksum of the whole."""
    whole = re.sub(r"[^a-z0-9_]", "_", f"millstream_{pipeline}_{source}".lower())
    return whole if len(whole) <= NAME_BYTES else f"{whole[: NAME_BYTES - 9]}_{zlib.crc32(whole.encode()):08x}"


def _key(table: TableInfo, context: NodeContext) -> tuple[str, ...]:
    """The columns by which changes identify their rows."""
    name = f"{table.schema}.{table.name}"
    if table.relkind not in _TABLES:
        raise RunError(Diagnostic("MS120", f"`{name}` is not a plain table, and has no changes", help="follow the tables behind it"))
    key = table.identity or (context.primary_key if table.replica == "f" else ())
    if not key:
        message = f"table `{name}` has no primary key and no replica identity, so changes cannot identify its rows"
        help_ = "add a primary key; or REPLICA IDENTITY FULL, and a `primary_key` at the source"
        raise RunError(Diagnostic("MS124", message, help=help_))
    missing = [column for column in key if column not in {each.name for each in table.columns}]
    if missing:
        raise RunError(Diagnostic("MS124", f"`{missing[0]}` is part of the key of `{name}`, but not in `columns`", help="add it"))
    return key
