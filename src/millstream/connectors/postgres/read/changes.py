"""Reads changes: when Spark asks for the latest offset, the slot is read into the spool; workers read the spool.

The slot is only peeked, so it does not move, and a peek ends between transactions. After a crash the spool is authoritative: its contents
are skipped in the next peek. The first chunk is the table itself, read in one repeatable-read transaction after the slot exists; later
changes of transactions that the snapshot saw are skipped, so that nothing is missed and nothing comes twice. When only other tables write
to the log, an empty chunk lets the slot advance; otherwise Postgres would keep its log for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from millstream.clients.postgres import Address, arrow
from millstream.clients.storage import Storage
from millstream.connectors.postgres.read.catalog import TableInfo
from millstream.connectors.postgres.read.decoding import Decoder, Seen
from millstream.connectors.postgres.read.folder import open_folder
from millstream.connectors.postgres.read.rows import ChangeShape
from millstream.connectors.postgres.read.slots import Names, SlotState, peek, require_published, require_slot, slot_lock, state
from millstream.connectors.postgres.read.snapshot import batches
from millstream.connectors.postgres.read.spool import Chunk, ChunkWriter, Spool
from millstream.jvm.arrow_source import Offset
from millstream.plan.changelog import OP

_START = "start.json"
_CHUNK_MESSAGES = 500_000
_SLACK = 1000
"""Messages that every peek repeats: descriptions of tables."""
_IDLE_BYTES = 16 << 20
"""How much the log may grow without a row of ours before the slot advances."""


@dataclass(frozen=True, slots=True)
class Start:
    """The decisions at the first start."""

    slot: str
    publication: str
    lsn: int
    columns: dict[str, int]
    """Columns, and the ids of their types."""
    others: list[str]
    """Columns that existed and are not read."""


@dataclass(frozen=True)
class Changes:
    """The configuration for reading a table's changes."""

    address: Address
    table: TableInfo
    names: Names
    shape: ChangeShape
    start: Start
    url: str
    snapshot: bool
    truncate: Literal["fail", "ignore"]
    changed: Literal["fail", "ignore"]
    all_columns: bool
    """Whether the source reads all columns, so that a new one matters."""
    durable: bool
    """Whether the spool must survive a power cut."""

    def first(self) -> Offset:
        return {"chunk": 0}

    def latest(self) -> Offset:
        """Spool the new changes, and return the offset of their end."""
        spool = Spool(open_folder(self.url, self.durable))
        with slot_lock(self.address, self.names.slot) as connection:
            found = state(connection, self.names)
            require_published(found, self.names)
            last = spool.last()
            require_slot(found, self.names, last.end if last else self.start.lsn)
            if last is None:
                last = spool.add(self._table(found, spool) if self.snapshot else Chunk(1, self.start.lsn, 0))
            size, all_there = _CHUNK_MESSAGES, False
            while not all_there:
                chunk, all_there = self._more(spool, last, found, size)
                last, size = spool.add(chunk) if chunk else last, size * 2
        return {"chunk": last.number}

    def parts(self, start: Offset, end: Offset) -> list[str]:
        spool = Spool(open_folder(self.url, self.durable))
        return [path for number in range(start["chunk"] + 1, end["chunk"] + 1) for path in spool.chunk(number).files]

    def read(self, part: str) -> Iterator[pa.RecordBatch]:
        yield from Spool(open_folder(self.url, self.durable)).batches(part)

    def _table(self, found: SlotState, spool: Spool) -> Chunk:
        """All rows of the table as the first chunk."""
        writing = ChunkWriter(spool.place, 1, 0, self.shape.full)
        with arrow(self.address) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # the snapshot is taken before the position is read: all that it saw was committed before that position
            cursor.execute("SELECT pg_current_snapshot()::text, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8")
            seen, until = cursor.fetchone()
            cursor.execute(f"SELECT {self.table.selection} FROM {self.table.sql}")
            for batch in batches(cursor.fetch_record_batch(), self.table):
                ops = pa.repeat(pa.scalar("i", pa.string()), batch.num_rows)
                writing.write(pa.Table.from_batches([batch]).append_column(OP, ops))
        writing.flush()
        return Chunk(1, found.confirmed, writing.seq, 0, tuple(writing.files), str(seen), int(until))

    def _more(self, spool: Spool, last: Chunk, found: SlotState, size: int) -> tuple[Chunk | None, bool]:
        """The next chunk, None when there is nothing yet; and whether that is all. Every peek reads what is spooled and not committed
        again: sizes that double limit that.
        """
        oldest = spool.chunk(spool.numbers()[0])
        limit = size + _SLACK + last.total - oldest.total
        until = last.until or found.flushed  # chunks of an older version do not have it; the snapshot was before now
        decoder = self._decoder(last, until)
        writing = ChunkWriter(spool.place, last.number + 1, last.seq, self.shape.full)
        count = self._peek(decoder, writing, found.flushed, limit)
        end = max(last.end, decoder.end)
        if count < limit and found.flushed - last.end > _IDLE_BYTES:
            end = max(end, found.flushed)
        if not writing.files and not (decoder.taken >= size or end - last.end > _IDLE_BYTES):
            return None, count < limit
        return Chunk(last.number + 1, end, writing.seq, last.total + decoder.taken, tuple(writing.files), last.seen, until), count < limit

    def _decoder(self, last: Chunk, until: int) -> Decoder:
        others = frozenset(self.start.others) if self.all_columns else None
        seen = Seen.of(last.seen, until) if last.seen else None
        place = (self.names.schema, self.names.table)
        return Decoder(self.shape, place, last.end, seen, self.start.columns, others, self.truncate, self.changed)

    def _peek(self, decoder: Decoder, writing: ChunkWriter, upto: int, limit: int) -> int:
        """Spool changes up to a position in the log; returns the number of messages."""
        count = 0
        with arrow(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(peek(self.names, upto, limit))
            for batch in cursor.fetch_record_batch():
                count += batch.num_rows
                if (rows := decoder.decode(batch.column(0))) is not None:
                    writing.write(rows)
        writing.flush()
        return count


def pinned_start(storage: Storage) -> Start | None:
    data = storage.read(_START)
    return None if data is None else Start(**json.loads(data))


def pin_start(storage: Storage, start: Start) -> Start:
    """Pin the start, unless an earlier start has."""
    storage.put_once(_START, json.dumps(asdict(start)).encode())
    kept = pinned_start(storage)
    assert kept is not None
    return kept


def changed_schema(table: TableInfo) -> pa.Schema:
    """The columns of a table's changes."""
    return ChangeShape("", table.arrow, ()).full


def published_columns(table: TableInfo) -> TableInfo:
    """The table with the columns that its changes have: generated ones are not included."""
    kept: Any = tuple(column for column in table.columns if not column.generated)
    return replace(table, columns=kept)
