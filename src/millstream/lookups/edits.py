"""Edits dynamic tables outside of a run, for the command line, with the table's own types."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.errors import Diagnostic, RunError, UsageError, nearest
from millstream.lookups.table import LocatesTable, TableSpec, TableStore, open_store
from millstream.lookups.values import parse_values
from millstream.plan.lookup_tables import tables_of
from millstream.plan.topology import Topology

_PAGE = 10_000


@dataclass(frozen=True)
class TableEditor:
    """Edits one table."""

    spec: TableSpec
    schema: pa.Schema
    store: TableStore

    def first(self, limit: int) -> tuple[list[dict[str, Any]], bool]:
        """The first `limit` rows, and whether there are more."""
        rows = self.store.first(limit + 1).to_pylist()
        return rows[:limit], len(rows) > limit

    def get(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        return self.store.get(self._keys(keys)).to_pylist()  # type: ignore[no-any-return]  # a list, which the stubs do not know

    def put(self, key: str, values: Sequence[str]) -> None:
        row: dict[str, str | None] = {self.spec.keys[0]: key}
        for pair in values:
            column, equals, value = pair.partition("=")
            if not equals:
                raise UsageError(Diagnostic("MS008", f"`{pair}` is not COLUMN=VALUE", help="for example: `tier=gold`"))
            self._require(column, f"`{pair}`")
            row[column] = value
        self._write([row])

    def delete(self, keys: Sequence[str]) -> int:
        return self.store.delete(self._keys(keys))

    def load(self, file: Path) -> int:
        """Load the rows of a CSV file, in pages; rows before an invalid line stay written."""
        try:
            with file.open(encoding="utf-8-sig", newline="") as opened_file:
                return self._load(csv.DictReader(opened_file, strict=True), file)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise UsageError(Diagnostic("MS008", f"`{file}` cannot be read: {error}")) from error

    def _load(self, reader: csv.DictReader[str], file: Path) -> int:
        for column in reader.fieldnames or ():
            self._require(column, f"`{file}`")
        if self.spec.keys[0] not in (reader.fieldnames or ()):
            raise UsageError(Diagnostic("MS008", f"`{file}` has no column `{self.spec.keys[0]}`, the key of `{self.spec.name}`"))
        count, page = 0, []
        for row in reader:
            if None in row or any(value is None for value in row.values()):
                raise UsageError(
                    Diagnostic("MS008", f"line {reader.line_num} of `{file}` has another number of fields than the first line")
                )
            page.append({name: value or None for name, value in row.items()})
            if len(page) == _PAGE:
                count += self._write(page)
                page = []
        return count + (self._write(page) if page else 0)

    def _write(self, rows: list[dict[str, str | None]]) -> int:
        key = self.spec.keys[0]
        if any(row.get(key) is None for row in rows):
            raise RunError(Diagnostic("MS136", f"`{self.spec.name}`: a row has no `{key}`, which is the key"))
        latest = list({row[key]: row for row in rows}.values())
        arrays = [parse_values([row.get(field.name) for row in latest], field.type, self.spec.name, field.name) for field in self.schema]
        self.store.put(pa.table(arrays, schema=self.schema))
        return len(rows)

    def _keys(self, keys: Sequence[str]) -> pa.Table:
        field = self.schema.field(0)
        return pa.table([parse_values(list(dict.fromkeys(keys)), field.type, self.spec.name, field.name)], names=[field.name])

    def _require(self, column: str, where: str) -> None:
        if column not in self.schema.names:
            message = f"{where}: table `{self.spec.name}` has no column `{column}`"
            raise UsageError(Diagnostic("MS008", message, help=nearest(column, self.schema.names)))


@contextmanager
def open_table(topology: Topology, name: str) -> Iterator[TableEditor]:
    """A dynamic table of a pipeline, created if missing."""
    tables = tables_of(topology.nodes)
    if name not in tables:
        raise UsageError(Diagnostic("MS130", f"pipeline `{topology.name}` has no dynamic table `{name}`", help=nearest(name, tables)))
    component = tables[name].component
    assert isinstance(component, LocatesTable)
    if component.backend == "memory":
        message = f"`{name}` is in the memory of a run and cannot be edited from outside"
        raise UsageError(Diagnostic("MS139", message, help="`backend: sqlite` keeps a table in a file"))
    spec = component.spec(name, topology.directory)
    store = open_store(spec)
    try:
        yield TableEditor(spec, store.ensure(), store)
    finally:
        store.close()
