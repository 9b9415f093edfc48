"""A feed of changes: the slot is read into the spool whenever Spark asks how far it can go, and workers read the spool.

The slot is peeked at, so it stays where it is, and a peek ends between transactions. After a crash the spool wins: what it holds is left
out of the next peek. The first chunk is the table itself, read in one repeatable-read transaction after the slot exists; later changes of
transactions which that snapshot saw are left out, so that nothing is missed and nothing comes twice however much is written meanwhile.
When the log grows by others' writes alone, an empty chunk lets the slot follow, or Postgres would keep its log for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from millstream.clients.postgres import Address, arrow
from millstream.clients.storage import Storage
from millstream.connectors.postgres.reading.catalog import Table
from millstream.connectors.postgres.reading.decoding import Decoder, Seen
from millstream.connectors.postgres.reading.feed import Offset
from millstream.connectors.postgres.reading.places import opened
from millstream.connectors.postgres.reading.rows import Shape
from millstream.connectors.postgres.reading.slots import Names, State, locked, peek, require_published, require_slot, state
from millstream.connectors.postgres.reading.snapshot import batches
from millstream.connectors.postgres.reading.spool import Chunk, Spool, Writing
from millstream.plan.changelog import OP

_START = "start.json"
_CHUNK_MESSAGES = 500_000
_SLACK = 1000
"""Messages that every peek repeats: descriptions of tables."""
_IDLE_BYTES = 16 << 20
"""How far the log may run ahead without a row of ours before the slot follows."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is decided when changes are first read."""

    slot: str
    publication: str
    lsn: int
    columns: dict[str, int]
    """Columns, and the numbers of their types."""
    others: list[str]
    """Columns that were there and are not read."""


@dataclass(frozen=True)
class Changes:
    """Everything that following a table needs."""

    address: Address
    table: Table
    names: Names
    shape: Shape
    start: Start
    url: str
    snapshot: bool
    truncate: Literal["fail", "ignore"]
    changed: Literal["fail", "ignore"]
    all_columns: bool
    """Whether the source reads whatever columns there are, so that a new one matters."""
    durable: bool
    """Whether what is spooled must survive a power cut."""

    def first(self) -> Offset:
        return {"chunk": 0}

    def latest(self) -> Offset:
        """Spool what is there, and say how far that goes."""
        spool = Spool(opened(self.url, self.durable))
        with locked(self.address, self.names.slot) as connection:
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
        spool = Spool(opened(self.url, self.durable))
        return [path for number in range(start["chunk"] + 1, end["chunk"] + 1) for path in spool.chunk(number).files]

    def read(self, part: str) -> Iterator[pa.RecordBatch]:
        yield from Spool(opened(self.url, self.durable)).batches(part)

    def _table(self, found: State, spool: Spool) -> Chunk:
        """All rows of the table as the first chunk."""
        writing = Writing(spool.place, 1, 0, self.shape.full)
        with arrow(self.address) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # the snapshot is taken before the place is asked for: whatever it saw was committed before that place
            cursor.execute("SELECT pg_current_snapshot()::text, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8")
            seen, until = cursor.fetchone()
            cursor.execute(f"SELECT {self.table.selection} FROM {self.table.sql}")
            for batch in batches(cursor.fetch_record_batch(), self.table):
                ops = pa.repeat(pa.scalar("i", pa.string()), batch.num_rows)
                writing.write(pa.Table.from_batches([batch]).append_column(OP, ops))
        writing.flush()
        return Chunk(1, found.confirmed, writing.seq, 0, tuple(writing.files), str(seen), int(until))

    def _more(self, spool: Spool, last: Chunk, found: State, size: int) -> tuple[Chunk | None, bool]:
        """The next chunk, None when there is nothing yet; and whether that is all. Every peek goes again over what is spooled and not
        committed: sizes that double keep that in proportion.
        """
        oldest = spool.chunk(spool.numbers()[0])
        limit = size + _SLACK + last.total - oldest.total
        until = last.until or found.flushed  # chunks of an older version do not say; the snapshot was before now
        decoder = self._decoder(last, until)
        writing = Writing(spool.place, last.number + 1, last.seq, self.shape.full)
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

    def _peek(self, decoder: Decoder, writing: Writing, upto: int, limit: int) -> int:
        """Changes up to a place in the log, as rows in files; how many messages there were."""
        count = 0
        with arrow(self.address) as connection, connection.cursor() as cursor:
            cursor.execute(peek(self.names, upto, limit))
            for batch in cursor.fetch_record_batch():
                count += batch.num_rows
                if (rows := decoder.decode(batch.column(0))) is not None:
                    writing.write(rows)
        writing.flush()
        return count


def started(storage: Storage) -> Start | None:
    data = storage.read(_START)
    return None if data is None else Start(**json.loads(data))


def pin_start(storage: Storage, start: Start) -> Start:
    """Keep how it began, unless an earlier start has."""
    storage.put_once(_START, json.dumps(asdict(start)).encode())
    kept = started(storage)
    assert kept is not None
    return kept


def changed_schema(table: Table) -> pa.Schema:
    """The columns of a table's changes."""
    return Shape("", table.arrow, ()).full


def published(table: Table) -> Table:
    """The table with the columns that its changes have: generated ones are not among them."""
    kept: Any = tuple(column for column in table.columns if not column.generated)
    return replace(table, columns=kept)
