"""The store in a table of Postgres, for runs without a persistent disk: many pipelines share one table, each under its name."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg

from millstream.clients.postgres import Address, connect, quote_name, translate_errors
from millstream.errors import TemporaryError
from millstream.store.protocol import Entry

Result = TypeVar("Result")
_COLUMNS = "pipeline text, namespace text, key text, value jsonb NOT NULL, updated_at timestamptz NOT NULL DEFAULT now()"


class PostgresStore:
    """One connection, reopened when it breaks."""

    def __init__(self, address: Address, schema: str, pipeline: str) -> None:
        self._address, self._schema, self._pipeline = address, schema, pipeline
        self._table = quote_name(schema, "store").replace("%", "%%")
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def get(self, namespace: str, key: str) -> Any | None:
        query = f"SELECT value FROM {self._table} WHERE pipeline = %s AND namespace = %s AND key = %s"
        found = self._ask(lambda connection: connection.execute(query, [self._pipeline, namespace, key]).fetchone())
        return found[0] if found else None

    def put_many(self, namespace: str, values: Mapping[str, Any]) -> None:
        query = (
            f"INSERT INTO {self._table} (pipeline, namespace, key, value) SELECT %s, %s, * FROM unnest(%s::text[], %s::jsonb[])"
            " ON CONFLICT (pipeline, namespace, key) DO UPDATE SET value = EXCLUDED.value, updated_at = now()"
        )
        row = [self._pipeline, namespace, list(values), [json.dumps(value) for value in values.values()]]
        self._ask(lambda connection: connection.execute(query, row))

    def list(self, namespace: str | None = None, prefix: str = "") -> list[Entry]:
        query = (
            f"SELECT namespace, key, value, to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM {self._table}"
            " WHERE pipeline = %s AND (%s::text IS NULL OR namespace = %s) AND starts_with(key, %s) ORDER BY namespace, key"
        )
        row = [self._pipeline, namespace, namespace, prefix]
        return [Entry(*found) for found in self._ask(lambda connection: connection.execute(query, row).fetchall())]

    def delete(self, namespace: str, key: str | None = None) -> int:
        query = f"DELETE FROM {self._table} WHERE pipeline = %s AND namespace = %s AND (%s::text IS NULL OR key = %s)"
        return self._ask(lambda connection: connection.execute(query, [self._pipeline, namespace, key, key]).rowcount)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _ask(self, question: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        """Every statement is idempotent, so a broken connection is reopened once."""
        with self._lock:
            try:
                return self._once(question)
            except TemporaryError:
                self._connection = None
                return self._once(question)

    def _once(self, question: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        if self._connection is None:
            self._connection = connect(self._address, autocommit=True)
            self._create(self._connection)
        with translate_errors(self._address):
            return question(self._connection)

    def _create(self, connection: psycopg.Connection[Any]) -> None:
        with translate_errors(self._address), connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('millstream'))")
            if connection.execute("SELECT to_regclass(%s)", [quote_name(self._schema, "store")]).fetchone() != (None,):
                return
            if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self._schema]).fetchone() is None:
                connection.execute(f"CREATE SCHEMA {quote_name(self._schema)}")
            connection.execute(f"CREATE TABLE {quote_name(self._schema, 'store')} ({_COLUMNS}, PRIMARY KEY (pipeline, namespace, key))")
