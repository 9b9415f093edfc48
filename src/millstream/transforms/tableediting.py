"""Dynamic tables edited from outside of a run: what the command line asks, in the table's own types."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from millstream.clients.storage import open_storage
from millstream.errors import Diagnostic, RunError, UsageError, nearest
from millstream.plan.components import NodeContext
from millstream.plan.tables import tables_of
from millstream.plan.topology import Topology
from millstream.state.tables.spec import Store, TableSpec, open_store
from millstream.state.tables.values import typed

_PAGE = 10_000


@dataclass(frozen=True)
class Edited:
    """One table."""

    spec: TableSpec
    schema: pa.Schema
    store: Store

    def first(self, limit: int) -> tuple[list[dict[str, Any]], bool]:
        """So many rows, and whether there are more."""
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
        """Rows of a CSV file, by pages; what was written before a bad line stays."""
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
                raise UsageError(Diagnostic("MS008", f"line {reader.line_num} of `{file}` has not as many fields as the first line"))
            page.append({name: value or None for name, value in row.items()})
            if len(page) == _PAGE:
                count += self._write(page)
                page = []
        return count + (self._write(page) if page else 0)

    def _write(self, rows: list[dict[str, str | None]]) -> int:
        key = self.spec.keys[0]
        if any(row.get(key) is None for row in rows):
            raise RunError(Diagnostic("MS136", f"`{self.spec.name}`: a row has no `{key}`, and is not to be found without"))
        latest = list({row[key]: row for row in rows}.values())
        arrays = [typed([row.get(field.name) for row in latest], field.type, self.spec.name, field.name) for field in self.schema]
        self.store.put(pa.table(arrays, schema=self.schema))
        return len(rows)

    def _keys(self, keys: Sequence[str]) -> pa.Table:
        field = self.schema.field(0)
        return pa.table([typed(list(dict.fromkeys(keys)), field.type, self.spec.name, field.name)], names=[field.name])

    def _require(self, column: str, where: str) -> None:
        if column not in self.schema.names:
            message = f"{where}: table `{self.spec.name}` has no column `{column}`"
            raise UsageError(Diagnostic("MS008", message, help=nearest(column, self.schema.names)))


@contextmanager
def opened(topology: Topology, name: str) -> Iterator[Edited]:
    """A dynamic table of a pipeline, made when it is missing."""
    tables = tables_of(topology.nodes)
    if name not in tables:
        raise UsageError(Diagnostic("MS130", f"pipeline `{topology.name}` has no dynamic table `{name}`", help=nearest(name, tables)))
    component = tables[name].component
    if component.backend == "memory":
        message = f"`{name}` is in the memory of a run, where nobody else can edit it"
        raise UsageError(Diagnostic("MS139", message, help="`backend: sqlite` keeps a table in a file"))
    context = NodeContext(name, topology.directory, open_storage(str(topology.directory)))
    spec = component.spec(name, context)
    store = open_store(spec)
    try:
        yield Edited(spec, store.settle(), store)
    finally:
        store.close()
