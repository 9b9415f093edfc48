"""Reads a table by ranges of its key.

The ranges are determined once, at the first start, and stored in the checkpoint; the last one ends at the largest key of that time, which
is the end of a bounded read. A row keeps its key, so each is read in one range, once, even if it changes meanwhile; every range is read in
one statement, as of the time when it is read. Ranges by position on disk would be faster, but an update would move rows between ranges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.clients.postgres import Address, arrow, literal, quote_name
from millstream.clients.storage import Storage
from millstream.connectors.postgres.read.catalog import TableInfo
from millstream.connectors.postgres.read.folder import open_folder
from millstream.connectors.postgres.read.types import to_arrow
from millstream.errors import Diagnostic, RunError
from millstream.jvm.arrow_source import Offset

if TYPE_CHECKING:
    import psycopg

_RANGES, _GIVEN = "ranges.json", "given.json"
_EXACT_ROWS = 300_000
"""Up to this size every key is read; for larger tables a sample determines the ranges."""
_RANGE_ROWS = 500_000
Bound = list[str]


@dataclass(frozen=True, slots=True)
class Key:
    """The columns that order a table's rows, and their types."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def sql(self) -> str:
        return f"({', '.join(map(quote_name, self.names))})"

    def value(self, texts: Sequence[str]) -> str:
        return f"({', '.join(f'{literal(text)}::{kind}' for text, kind in zip(texts, self.kinds, strict=True))})"

    def texts(self) -> str:
        """The values as texts, with aliases: otherwise `ORDER BY` would use the text instead of its column."""
        return ", ".join(f'{quote_name(name)}::text AS "millstream {place}"' for place, name in enumerate(self.names))

    def ends(self, table: str, condition: str, each: str) -> str:
        """SQL for the values that end parts of `each` rows, of `total` rows in all."""
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


def key_of(table: TableInfo, names: Sequence[str]) -> Key | None:
    """The key of these columns; None unless all are NOT NULL."""
    columns = [table.column(name) for name in names]
    if not columns or not all(column is not None and column.required for column in columns):
        return None
    return Key(tuple(names), tuple(column.kind for column in columns if column is not None))


@dataclass
class TableSnapshot:
    """Reads ranges. `step` ranges make an epoch, all of them when it is None."""

    address: Address
    table: TableInfo
    key: Key | None
    bounds: list[Bound]
    where: str
    url: str = ""
    step: int | None = None
    given: int | None = None

    def first(self) -> Offset:
        return {"range": 0}

    def latest(self) -> Offset:
        """The end of the next epoch. Returned offsets are stored: Spark asks without its current position."""
        if self.step is None:
            return {"range": len(self.bounds)}
        storage = open_folder(self.url)
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


def rows(address: Address, table: TableInfo, condition: str) -> Iterator[pa.RecordBatch]:
    """The rows for which a condition is true, as Arrow batches."""
    with arrow(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {table.selection} FROM {table.sql} WHERE {condition}")
        yield from batches(cursor.fetch_record_batch(), table)


def batches(reader: Any, table: TableInfo) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield fit_batch(batch, table.arrow, f"{table.schema}.{table.name}")


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema, table: str) -> pa.RecordBatch:
    """A batch in the source's types."""
    arrays = []
    for field, array in zip(schema, batch.columns, strict=True):
        try:
            arrays.append(to_arrow(array, field.type))
        except pa.ArrowInvalid as error:
            message = f"a value of `{table}` does not fit column `{field.name}`, which is read as {field.type}: {error}"
            raise RunError(Diagnostic("MS129", message, help=f"`types: {{{field.name}: string}}` accepts every value")) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def pinned_ranges(storage: Storage) -> list[Bound] | None:
    """The ranges, once determined: each by its last key."""
    data = storage.read(_RANGES)
    return None if data is None else json.loads(data)["bounds"]


def pin(
    storage: Storage, connection: psycopg.Connection[Any], table: TableInfo, key: Key | None, size: int | None, least: int
) -> list[Bound]:
    """Determine the ranges, unless an earlier start has."""
    if (known := pinned_ranges(storage)) is None:
        storage.put_once(_RANGES, json.dumps({"bounds": find_ranges(connection, table, key, size, least)}).encode())
        known = pinned_ranges(storage)
    assert known is not None
    return known


def find_ranges(connection: psycopg.Connection[Any], table: TableInfo, key: Key | None, size: int | None, least: int) -> list[Bound]:
    """Keys that end ranges of about `size` rows, the largest key last; one empty bound where there is nothing to divide."""
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
    return ", ".join(f"{quote_name(name)} DESC" for name in key.names)
