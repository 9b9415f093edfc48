"""A table's rows by ranges of its key.

The ranges are cut once, at the first start, and kept in the checkpoint; the last one ends at the largest key of that moment, and that is
the end of a bounded read. A row keeps its key, so each is read in one range, once, however it changes meanwhile; every range is read
in one statement, as of the moment when it is read. Cutting by place on disk would be quicker, and an update would move rows across cuts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.clients.postgres import Address, arrow, literal, quoted
from millstream.clients.storage import Storage
from millstream.connectors.postgres.reading.catalog import Table
from millstream.connectors.postgres.reading.feed import Offset
from millstream.connectors.postgres.reading.places import opened
from millstream.connectors.postgres.reading.types import shaped
from millstream.errors import Diagnostic, RunError

if TYPE_CHECKING:
    import psycopg

_RANGES, _GIVEN = "ranges.json", "given.json"
_EXACT_ROWS = 300_000
"""Up to here every key is looked at; larger tables are cut by a sample."""
_RANGE_ROWS = 500_000
Bound = list[str]


@dataclass(frozen=True, slots=True)
class Key:
    """The columns that order a table's rows, and their types."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def sql(self) -> str:
        return f"({', '.join(map(quoted, self.names))})"

    def value(self, texts: Sequence[str]) -> str:
        return f"({', '.join(f'{literal(text)}::{kind}' for text, kind in zip(texts, self.kinds, strict=True))})"

    def texts(self) -> str:
        """The values as texts. They have names of their own: `ORDER BY` would take the text for the column that it is made of."""
        return ", ".join(f'{quoted(name)}::text AS "millstream {place}"' for place, name in enumerate(self.names))

    def ends(self, table: str, condition: str, each: str) -> str:
        """SQL for the values that end parts of so many rows, of `total` rows in all."""
        order = self.sql[1:-1]
        total, number = '"millstream total"', '"millstream number"'
        numbered = (
            f"SELECT {order}, row_number() OVER (ORDER BY {order}) AS {number}, count(*) OVER () AS {total} FROM {table} WHERE {condition}"
        )
        return f"SELECT {self.texts()} FROM ({numbered}) AS ends WHERE {number} % {each.replace('total', total)} = 0 ORDER BY {number}"

    def between(self, low: Sequence[str] | None, high: Sequence[str] | None) -> str:
        """A condition: after one value, and up to another."""
        after = [f"{self.sql} > {self.value(low)}"] if low is not None else []
        upto = [f"{self.sql} <= {self.value(high)}"] if high is not None else []
        return " AND ".join([*after, *upto]) or "TRUE"


def key_of(table: Table, names: Sequence[str]) -> Key | None:
    """The key by these columns; None unless every row has a value in each."""
    columns = [table.column(name) for name in names]
    if not columns or not all(column is not None and column.required for column in columns):
        return None
    return Key(tuple(names), tuple(column.kind for column in columns if column is not None))


@dataclass
class Snapshot:
    """A feed of ranges. `step` ranges make an epoch, all of them when it is None."""

    address: Address
    table: Table
    key: Key | None
    bounds: list[Bound]
    where: str
    url: str = ""
    step: int | None = None
    given: int | None = None

    def first(self) -> Offset:
        return {"range": 0}

    def latest(self) -> Offset:
        """How far the next epoch goes. What was given out is kept: Spark asks without saying where it is."""
        if self.step is None:
            return {"range": len(self.bounds)}
        storage = opened(self.url)
        if self.given is None:
            kept = storage.read(_GIVEN)
            self.given = int(json.loads(kept)["range"]) if kept else 0
            if self.given:
                return {"range": self.given}
        self.given = min(len(self.bounds), self.given + self.step)
        storage.put(_GIVEN, json.dumps({"range": self.given}).encode())
        return {"range": self.given}

    def parts(self, start: Offset, end: Offset) -> list[int]:
        return list(range(start["range"], end["range"]))

    def read(self, part: int) -> Iterator[pa.RecordBatch]:
        within = "TRUE"
        if self.key is not None:
            within = self.key.between(self.bounds[part - 1] if part else None, self.bounds[part]) if self.bounds[part] else "FALSE"
        where = f" AND ({self.where}\n)" if self.where else ""
        yield from rows(self.address, self.table, f"{within}{where}")


def rows(address: Address, table: Table, condition: str) -> Iterator[pa.RecordBatch]:
    """The rows for which a condition is true, as Arrow batches."""
    with arrow(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {table.selection} FROM {table.sql} WHERE {condition}")
        yield from batches(cursor.fetch_record_batch(), table)


def batches(reader: Any, table: Table) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield fitted(batch, table.arrow, f"{table.schema}.{table.name}")


def fitted(batch: pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    """A batch with the types that the source has."""
    arrays = []
    for field, array in zip(schema, batch.columns, strict=True):
        try:
            arrays.append(shaped(array, field.type))
        except pa.ArrowInvalid as error:
            message = f"a value of `{table}` does not fit column `{field.name}`, which is read as {field.type}: {error}"
            raise RunError(Diagnostic("MS129", message, help=f"`types: {{{field.name}: string}}` takes every value")) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def pinned(storage: Storage) -> list[Bound] | None:
    """The ranges, once they are cut: each by the key that it ends with."""
    data = storage.read(_RANGES)
    return None if data is None else json.loads(data)["bounds"]


def pin(storage: Storage, connection: psycopg.Connection[Any], table: Table, key: Key | None, size: int | None, least: int) -> list[Bound]:
    """Cut the ranges, unless an earlier start has."""
    if (known := pinned(storage)) is None:
        storage.put_once(_RANGES, json.dumps({"bounds": cut(connection, table, key, size, least)}).encode())
        known = pinned(storage)
    assert known is not None
    return known


def cut(connection: psycopg.Connection[Any], table: Table, key: Key | None, size: int | None, least: int) -> list[Bound]:
    """Keys that end ranges of about `size` rows, the largest key last; one empty bound where there is nothing to cut."""
    if key is None:
        return [[]]
    last = connection.execute(f"SELECT {key.texts()} FROM {table.sql} ORDER BY {_descending(key)} LIMIT 1").fetchone()
    if last is None:
        return [[]]
    total = max(1.0, table.rows)
    count = ceil(total / size) if size else max(least, ceil(total / _RANGE_ROWS))
    sample = f" TABLESAMPLE SYSTEM ({min(100.0, 100.0 * 1000 * count / total):.4f})" if total > _EXACT_ROWS and table.relkind == "r" else ""
    per = f"greatest(1, {int(size)})" if size and not sample else f"greatest(1, ceil(total / {count}.0)::int8)"
    found = connection.execute(key.ends(f"{table.sql}{sample}", "TRUE", per)).fetchall()
    bounds = [list(row) for row in found]
    return bounds if bounds and bounds[-1] == list(last) else [*bounds, list(last)]


def _descending(key: Key) -> str:
    return ", ".join(f"{quoted(name)} DESC" for name in key.names)
