"""Two plugins: a transform that leaves personal data out of texts, and a sink that writes to SQLite exactly once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
import pyarrow.compute as pc

from millstream import ArrowSink, ArrowTransform, Epoch, LedgerEntry, NodeContext, Task, WriteTask, plugin

LEDGER = "CREATE TABLE IF NOT EXISTS ledger (query TEXT, sink TEXT, epoch INTEGER, digest TEXT, PRIMARY KEY (query, sink))"


@plugin("example.mask")
class Mask(ArrowTransform):
    """Replaces addresses of mail in a text."""

    summary = "Replace addresses of mail."

    column: str
    """The column with the text."""
    by: str = "<address>"
    """What stands in their place."""

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        texts = batch.column(self.column)
        masked = pc.replace_substring_regex(texts, pattern=r"[\w.+-]+@[\w-]+(\.[\w-]+)+", replacement=self.by)
        task.metrics.count("masked_texts", pc.sum(pc.not_equal(texts, masked)).as_py() or 0)
        return batch.set_column(batch.schema.get_field_index(self.column), self.column, masked)


@plugin("example.sqlite")
class Sqlite(ArrowSink):
    """Writes rows as JSON into a table of SQLite. One transaction has the rows of an epoch and its number."""

    summary = "Write rows into SQLite, exactly once."
    commit_method = "one transaction has the rows and the epoch's number"

    path: str
    """The file of the database."""

    def write(self, batches: Iterator[pa.RecordBatch], task: WriteTask) -> list[str]:
        return [json.dumps(row, default=str) for batch in batches for row in batch.to_pylist()]

    def commit(self, messages: Sequence[list[str]], epoch: Epoch, context: NodeContext) -> None:
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(LEDGER)
            database.execute("CREATE TABLE IF NOT EXISTS messages (row TEXT)")
            database.executemany("INSERT INTO messages VALUES (?)", [(row,) for message in messages for row in message])
            database.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?)", (epoch.query, epoch.sink, epoch.number, epoch.digest))

    def held(self, epoch: Epoch, context: NodeContext) -> LedgerEntry | None:
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute(LEDGER)
            found = database.execute("SELECT epoch, digest FROM ledger WHERE query = ? AND sink = ?", (epoch.query, epoch.sink)).fetchone()
        return LedgerEntry(*found) if found else None
