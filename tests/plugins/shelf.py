"""Plugins that the tests use, of each kind. Their module travels to workers by value, like a package that only the driver has."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

import millstream
from millstream import ArrowSink, ArrowSource, ArrowTransform, Epoch, LedgerEntry, NodeContext, Preprocessor, SideOutput, Task, Udf


@millstream.plugin("shelf.numbers")
class Numbers(ArrowSource):
    """Numbers, so many in an epoch; a file says how many there are, and how many are committed."""

    folder: str
    """Where the files are."""
    per_epoch: int = Field(default=1000, ge=1)
    """The most rows of an epoch."""
    total: int | None = None
    """How many there are; else the file `count` says it."""

    @property
    def bounded(self) -> bool:
        return self.total is not None

    def output(self) -> pa.Schema:
        return pa.schema([("n", pa.int64())])

    def reader(self, context: NodeContext) -> NumbersReader:
        return NumbersReader(self.total if self.total is not None else int(Path(self.folder, "count").read_text()))

    def commit(self, offset: dict, context: NodeContext) -> None:
        Path(self.folder, "committed").write_text(str(offset["n"]))


class NumbersReader:
    def __init__(self, total: int) -> None:
        self.total = total

    def first(self) -> dict:
        return {"n": 0}

    def latest(self) -> dict:
        return {"n": self.total}

    def parts(self, start: dict, end: dict) -> list:
        middle = (start["n"] + end["n"]) // 2
        return [part for part in ((start["n"], middle), (middle, end["n"])) if part[0] < part[1]]

    def read(self, part: tuple[int, int]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": pa.array(range(*part), pa.int64())})


@millstream.plugin("shelf.times")
class Times(ArrowTransform):
    """Adds a multiple of `n`."""

    factor: int = 2
    """By how much."""
    refused: int | None = None
    """A number that it cannot handle."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema.append(pa.field("m", pa.int64()))

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
        if self.refused is not None and pc.any(pc.equal(batch.column("n"), self.refused)).as_py():
            raise ValueError(f"{self.refused} is refused")
        task.metrics.count("multiplied", batch.num_rows)
        return batch.append_column("m", self._product(batch.column("n")))

    def _product(self, numbers: pa.Array) -> pa.Array:
        return pc.multiply(numbers, self.factor)


@millstream.plugin("shelf.sqlite")
class SqliteSink(ArrowSink):
    """Numbers in a table of SQLite; its transaction has the ledger."""

    path: str
    """The file of the database."""

    def write(self, batches: Iterator[pa.RecordBatch], task: millstream.WriteTask) -> list[int]:
        return [number for batch in batches for number in batch.column("n").to_pylist()]

    def commit(self, messages: Sequence[list[int]], epoch: Epoch, context: NodeContext) -> None:
        with closing(self._open()) as database, database:
            database.executemany("INSERT INTO numbers VALUES (?)", [(number,) for message in messages for number in message])
            key = (epoch.query, epoch.sink, epoch.number, epoch.digest)
            database.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?)", key)

    def held(self, epoch: Epoch, context: NodeContext) -> LedgerEntry | None:
        with closing(self._open()) as database:
            found = database.execute("SELECT epoch, digest FROM ledger WHERE query = ? AND sink = ?", (epoch.query, epoch.sink)).fetchone()
        return LedgerEntry(*found) if found else None

    def _open(self) -> Any:
        database = sqlite3.connect(self.path)
        database.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
        database.execute("CREATE TABLE IF NOT EXISTS ledger (query TEXT, sink TEXT, epoch INTEGER, digest TEXT, PRIMARY KEY (query, sink))")
        return database


@millstream.plugin("shelf.plus")
class Plus(Udf):
    """Adds to a number."""

    returns = "int64"
    amount: int = 1
    """How much."""

    def call(self, numbers: pa.Array) -> pa.Array:
        return pc.add(numbers, self.amount)


@millstream.plugin("shelf.spread")
class Spread(Udf):
    """The largest less the smallest value of a group."""

    returns = "int64"
    aggregate = True

    def call(self, numbers: pa.Array) -> int | None:
        found = pc.min_max(numbers).as_py()
        return None if found["min"] is None else found["max"] - found["min"]


@millstream.plugin("shelf.words")
class Words(Preprocessor):
    """Replaces `<<name>>`."""

    values: dict[str, str]
    """Name → value."""

    def rewrite(self, text: str, pipeline: millstream.PipelineText) -> str:
        for name, value in self.values.items():
            text = text.replace(f"<<{name}>>", value)
        return text


@millstream.plugin("shelf.tally")
class Tally(SideOutput):
    """Counts rows."""

    def observe(self, batch: pa.RecordBatch, task: Task) -> None:
        task.metrics.count("seen", batch.num_rows)
        task.metrics.count(f"columns {','.join(batch.schema.names)}", 1)


def numbers_in(path: Path) -> list[int]:
    """What readers of the sink see."""
    with closing(sqlite3.connect(path)) as database:
        there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'numbers'").fetchone()
        return sorted(n for (n,) in database.execute("SELECT n FROM numbers")) if there else []
