"""Reads rows after a cursor: polls, and reads between two pairs of cursor and key.

The position of a row is its cursor followed by its key, and pairs are compared as a whole: rows with equal cursors on both sides of an end
have different keys, so none is lost and none is read twice. The end of an epoch is the largest pair when it is planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.clients.postgres import Address, open_connection, quote_name
from millstream.connectors.postgres.read.catalog import TableInfo
from millstream.connectors.postgres.read.snapshot import Key, rows
from millstream.errors import Diagnostic, RunError, nearest
from millstream.jvm.arrow_source import Offset

Pair = list[str]
_LEAST_ROWS = 10_000
"""The fewest rows for a separate task."""


@dataclass(frozen=True)
class Incremental:
    """Reads rows whose cursor has grown."""

    address: Address
    table: TableInfo
    pair: Key
    """The cursor first, then the key."""
    where: str
    delay: float
    partitions: int

    def first(self) -> Offset:
        return {"after": None}

    def latest(self) -> Offset:
        descending = ", ".join(f"{quote_name(name)} DESC" for name in self.pair.names)
        with open_connection(self.address) as connection:
            found = connection.execute(
                f"SELECT {self.pair.texts()} FROM {self.table.sql} WHERE {self._usual()} ORDER BY {descending} LIMIT 1"
            )
            last = found.fetchone()
        return {"after": list(last) if last else None}

    def parts(self, start: Offset, end: Offset) -> list[tuple[Pair | None, Pair]]:
        """Ranges of about equal size; one where there is little to read."""
        if end["after"] is None:
            return []
        within = f"{self.pair.between(start['after'], end['after'])} AND {self._usual()}"
        cuts = self.pair.ends(self.table.sql, within, f"greatest({_LEAST_ROWS}, total / {self.partitions})")
        with open_connection(self.address) as connection:
            bounds: list[Any] = [list(row) for row in connection.execute(cuts).fetchall()]
        ends = [bound for bound in bounds if bound != end["after"]]
        return list(zip([start["after"], *ends], [*ends, end["after"]], strict=True))

    def read(self, part: tuple[Pair | None, Pair]) -> Iterator[pa.RecordBatch]:
        yield from rows(self.address, self.table, f"{self.pair.between(*part)} AND {self._usual()}")

    def _usual(self) -> str:
        cursor, kind = quote_name(self.pair.names[0]), self.pair.kinds[0]
        old = [f"{cursor} <= (now() - interval '{self.delay} seconds')::{kind}"] if self.delay else []
        return " AND ".join([f"{cursor} IS NOT NULL", *old, *([f"({self.where}\n)"] if self.where else [])])


def pair_of(table: TableInfo, cursor: str, key: Key | None, delayed: bool) -> Key:
    """The cursor and the key that define a row's position."""
    column = table.column(cursor)
    if column is None:
        help_ = nearest(cursor, [each.name for each in table.every])
        raise RunError(Diagnostic("MS120", f"table `{table.schema}.{table.name}` has no column `{cursor}`", help=help_))
    if key is None:
        message = f"table `{table.schema}.{table.name}` has no primary key, and rows with equal cursors could not be distinguished"
        raise RunError(
            Diagnostic("MS124", message, help="give the source a `primary_key` of columns that are NOT NULL and unique together")
        )
    if delayed and not column.kind.startswith(("timestamp", "date")):
        raise RunError(Diagnostic("MS120", f"`delay` needs a cursor that is a time, and `{cursor}` is {column.kind}", help="leave it out"))
    names = [(cursor, column.kind), *((name, kind) for name, kind in zip(key.names, key.kinds, strict=True) if name != cursor)]
    return Key(tuple(name for name, _ in names), tuple(kind for _, kind in names))
