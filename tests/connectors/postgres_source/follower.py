"""A source of changes driven by hand, without Spark: what an epoch would read, and what a commit would do."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.servers.postgres import Database

from millstream.clients.storage import LocalStorage
from millstream.connectors.postgres.source import PostgresSource
from millstream.dev.postgres import NAME
from millstream.plan.components import NodeContext

Rows = list[dict[str, Any]]


class Follower:
    """One pipeline that follows a table; made again over the same folder it is that pipeline after a crash."""

    def __init__(
        self, postgres: Database, table: str, folder: Path, slot: str = "", source: dict[str, Any] | None = None, **mode: Any
    ) -> None:
        self.slot = slot or f"s{uuid.uuid4().hex[:12]}"
        options = {"host": "127.0.0.1", "port": postgres.server.port, "database": NAME, "user": NAME, "password": NAME, **(source or {})}
        options |= {name: mode.pop(name) for name in ("unchanged", "truncate", "on_schema_change") if name in mode}
        self.source = PostgresSource(table=table, mode={"type": "cdc", "slot": self.slot, **mode}, **options)
        self.context = NodeContext("t", folder, LocalStorage(folder / "node"), pipeline="p")
        self.schema: pa.Schema | None = None
        self.at: dict[str, Any] = {"chunk": 0}
        self._reader: Any = None

    def prepare(self) -> None:
        """What a start does: slot and publication."""
        if self._reader is None:
            self.schema = self.schema or self.source.open(self.context).discover(None)  # type: ignore[arg-type]
            pinned = NodeContext("t", self.context.directory, self.context.storage, pipeline="p", schema=self.schema)
            self._reader, _ = self.source.open(pinned).open_reader(None)  # type: ignore[arg-type]

    def plan(self) -> dict[str, Any]:
        """How far the next epoch goes."""
        self.prepare()
        found: dict[str, Any] = self._reader.latest()
        return found

    def rows(self, end: dict[str, Any], start: dict[str, Any] | None = None) -> Rows:
        """What an epoch reads."""
        parts = self._reader.parts(start or self.at, end)
        return [row for part in parts for batch in self._reader.read(part) for row in batch.to_pylist()]

    def epoch(self, commit: bool = True) -> Rows:
        """The next epoch's rows, committed."""
        end = self.plan()
        found = self.rows(end)
        if commit:
            self.at = end
            self.source.open(self.context).on_commit(None, end)  # type: ignore[arg-type]
        return found


def ops(rows: Rows) -> list[tuple[Any, ...]]:
    """Operation and values, without the number."""
    return [(row["_op"], *(value for name, value in row.items() if name not in {"_op", "_seq"})) for row in rows]


def code(raised: Any) -> str:
    """The code of an error that was raised."""
    found: str = raised.value.diagnostics[0].code
    return found
