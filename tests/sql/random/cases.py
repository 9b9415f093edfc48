"""A case of the random test: tables, a query, and the changes of each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql.types import StructType

Row = tuple[Any, ...]
Change = tuple[Row, int]
"""A row and its weight: 1 inserts it, -1 deletes it. Of a table with a key a row and its op: see `OPS`."""
Epoch = dict[str, tuple[Change, ...]]
"""table → changes"""
OPS = {1: "i", 2: "u", 3: None, -1: "d"}
"""The changes of a table with a key: all but the last replace the row of their key, whether it is there or not."""


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[tuple[str, str], ...]
    """name and SQL type"""
    append_only: bool = False
    key: tuple[str, ...] = ()
    """The primary key: the table is given as a changelog."""
    sequenced: bool = False
    """Whether the changelog says the order of its rows in `_seq`; then they arrive in another one."""

    @property
    def places(self) -> tuple[int, ...]:
        """Where the columns of the key are."""
        return tuple(place for place, (name, _) in enumerate(self.columns) if name in self.key)

    @property
    def ddl(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self.columns)

    @property
    def schema(self) -> StructType:
        return cast("StructType", StructType.fromDDL(self.ddl))


@dataclass(frozen=True)
class Case:
    seed: int
    query: str
    tables: tuple[Table, ...]
    epochs: tuple[Epoch, ...]

    def __str__(self) -> str:
        """Python source of the case, to be copied into `regressions.py`."""
        tables = "".join(f"        {table!r},\n" for table in self.tables)
        epochs = "".join(f"        {_epoch_text(epoch)},\n" for epoch in self.epochs)
        query = f'"""{self.query}"""' if "\n" in self.query else repr(self.query)
        return f"Case(\n    seed={self.seed},\n    query={query},\n    tables=(\n{tables}    ),\n    epochs=(\n{epochs}    ),\n)"


class InvalidCaseError(Exception):
    """A deleted row is not in its table, or an append-only table has a delete."""


def contents(case: Case) -> Iterator[dict[str, list[Row]]]:
    """The rows of every table after each epoch."""
    tables: dict[str, list[Row]] = {table.name: [] for table in case.tables}
    for epoch in case.epochs:
        for table in case.tables:
            tables[table.name] = changed(table, tables[table.name], epoch.get(table.name, ()))
        yield {name: list(rows) for name, rows in tables.items()}


def check(case: Case) -> None:
    for _ in contents(case):
        pass


def changed(table: Table, rows: list[Row], changes: Sequence[Change]) -> list[Row]:
    if table.append_only and any(weight < 0 for _, weight in changes):
        raise InvalidCaseError(f"`{table.name}` is append-only and has a delete")
    return _upserted(table, rows, changes) if table.key else _added(rows, changes)


def _upserted(table: Table, rows: list[Row], changes: Sequence[Change]) -> list[Row]:
    by_key = {key_of(row, table.places): row for row in rows}
    for row, weight in changes:
        by_key.pop(key_of(row, table.places), None)
        if weight > 0:
            by_key[key_of(row, table.places)] = row
    return list(by_key.values())


def key_of(row: Row, places: Sequence[int]) -> str:
    """Equal keys of SQL have equal texts: NaN is equal to itself, and -0.0 to 0.0."""
    return re.sub(r"(?<![\w.])-0\.0\b", "0.0", repr([row[place] for place in places]))


def _added(rows: list[Row], changes: Sequence[Change]) -> list[Row]:
    """Rows are the same when they are written the same: NaN is equal to itself, and -0.0 is not 0.0."""
    rows = [*rows, *(row for row, weight in changes if weight > 0)]
    texts = [repr(row) for row in rows]
    for row, weight in changes:
        if weight < 0:
            if repr(row) not in texts:
                raise InvalidCaseError(f"{row} is deleted and is not there")
            place = texts.index(repr(row))
            del texts[place], rows[place]
    return rows


def _epoch_text(epoch: Mapping[str, tuple[Change, ...]]) -> str:
    return "{" + ", ".join(f"{name!r}: {changes!r}" for name, changes in epoch.items()) + "}"
