"""How following a table begins: what cannot work is refused, slot and publication are made or found, and the start is pinned."""

from __future__ import annotations

import re
import zlib

from millstream.clients.postgres import NAME_BYTES
from millstream.connectors.postgres.reading.catalog import Table, reading
from millstream.connectors.postgres.reading.changes import Changes, Start, pin_start, started
from millstream.connectors.postgres.reading.options import CdcMode, PostgresSourceOptions
from millstream.connectors.postgres.reading.rows import Shape
from millstream.connectors.postgres.reading.slots import Names, prepare
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import NodeContext

_TABLES = {"r", "p"}


def following(options: PostgresSourceOptions, mode: CdcMode, table: Table, context: NodeContext) -> Changes:
    """The feed of a table's changes, ready to be read."""
    key = _key(table, context)
    slot = mode.slot or slot_name(context.pipeline, context.name)
    names = Names(slot, mode.publication or slot, table.schema, table.name)
    address, known = reading(options, read_only=False), started(context.storage)
    found = prepare(address, names, table, mode.create, known is not None)
    columns = {column.name: column.number for column in table.columns}
    others = [column.name for column in table.every if column.name not in columns]
    start = known or pin_start(context.storage, Start(names.slot, names.publication, found.confirmed, columns, others))
    shape = Shape(f"{table.schema}.{table.name}", table.arrow, key, options.unchanged)
    snapshot, all_columns = mode.snapshot == "initial", not options.columns
    what = (options.truncate, options.on_schema_change, all_columns)
    return Changes(address, table, names, shape, start, context.storage.url, snapshot, *what, durable=context.storage.durable)


def slot_name(pipeline: str, source: str) -> str:
    """A name that Postgres takes; one that had to be cut ends with a checksum of the whole."""
    whole = re.sub(r"[^a-z0-9_]", "_", f"millstream_{pipeline}_{source}".lower())
    return whole if len(whole) <= NAME_BYTES else f"{whole[: NAME_BYTES - 9]}_{zlib.crc32(whole.encode()):08x}"


def _key(table: Table, context: NodeContext) -> tuple[str, ...]:
    """The columns by which changes name their rows."""
    name = f"{table.schema}.{table.name}"
    if table.relkind not in _TABLES:
        raise RunError(Diagnostic("MS120", f"`{name}` is no table of its own, and has no changes", help="follow the tables behind it"))
    key = table.identity or (context.primary_key if table.replica == "f" else ())
    if not key:
        message = f"table `{name}` has nothing that identifies its rows: no primary key and no replica identity"
        help_ = "add a primary key; or REPLICA IDENTITY FULL, and a `primary_key` at the source"
        raise RunError(Diagnostic("MS124", message, help=help_))
    missing = [column for column in key if column not in {each.name for each in table.columns}]
    if missing:
        raise RunError(Diagnostic("MS124", f"`{missing[0]}` is part of the key of `{name}`, and `columns` leaves it out", help="add it"))
    return key
