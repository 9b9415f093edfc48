"""The store in a file: SQLite with a write-ahead log, so that readers never block the run that writes it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from millstream.clients.storage import make_private
from millstream.errors import Diagnostic, RunError
from millstream.store.protocol import Entry

_TABLE = """
    CREATE TABLE IF NOT EXISTS store (
        namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
        updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), PRIMARY KEY (namespace, key)
    ) WITHOUT ROWID
"""
_PUT = """
    INSERT INTO store (namespace, key, value) VALUES (?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
"""
_SECONDS = 10


class SqliteStore:
    """One file; threads share it."""

    def __init__(self, path: Path, durable: bool = True) -> None:
        self._path, self._durable, self._lock = path, durable, threading.Lock()

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        """Opened on first use: most runs never use it."""
        try:
            make_private(self._path.parent)
            connection = sqlite3.connect(self._path, timeout=_SECONDS, check_same_thread=False, isolation_level=None)
            synchronous = "FULL" if self._durable else "NORMAL"
            for statement in ("PRAGMA journal_mode = WAL", f"PRAGMA synchronous = {synchronous}", _TABLE):
                connection.execute(statement)
        except (sqlite3.Error, OSError) as error:
            raise RunError(Diagnostic("MS119", f"the store `{self._path}` cannot be opened: {error}")) from error
        return connection

    def get(self, namespace: str, key: str) -> Any | None:
        with self._lock:
            found = self._connection.execute("SELECT value FROM store WHERE namespace = ? AND key = ?", (namespace, key)).fetchone()
        return json.loads(found[0]) if found else None

    def put_many(self, namespace: str, values: Mapping[str, Any]) -> None:
        rows = [(namespace, key, json.dumps(value)) for key, value in values.items()]
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._connection.executemany(_PUT, rows)
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def list(self, namespace: str | None = None, prefix: str = "") -> list[Entry]:
        query = "SELECT * FROM store WHERE (?1 IS NULL OR namespace = ?1) AND substr(key, 1, length(?2)) = ?2 ORDER BY namespace, key"
        with self._lock:
            rows = self._connection.execute(query, (namespace, prefix)).fetchall()
        return [Entry(name, key, json.loads(value), at) for name, key, value, at in rows]

    def delete(self, namespace: str, key: str | None = None) -> int:
        with self._lock:
            query = "DELETE FROM store WHERE namespace = ?1 AND (?2 IS NULL OR key = ?2)"
            return self._connection.execute(query, (namespace, key)).rowcount

    def close(self) -> None:
        with self._lock:
            if "_connection" in self.__dict__:
                self._connection.close()
