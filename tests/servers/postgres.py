"""A real Postgres for a whole test run; each test gets a schema of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from millstream.clients.postgres import Address
from millstream.dev.postgres import NAME, Postgres, start_postgres
from millstream.errors import SetupError


@dataclass
class Database:
    """The server, seen from outside."""

    server: Postgres

    @property
    def address(self) -> Address:
        return self.server.address

    @property
    def connection(self) -> str:
        """The options of a connection, as YAML."""
        return f"{{host: 127.0.0.1, port: {self.server.port}, database: {NAME}, user: {NAME}, password: {NAME}}}"

    def schema(self) -> str:
        """A new schema, under a name that no other test has."""
        name = f"s{uuid.uuid4().hex[:8]}"
        self.run(f"CREATE SCHEMA {name}")
        return name

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.address.text, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.address.text, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def clear_public(self) -> None:
        """Empty the schema that examples and pages write to: two of them may name the same table."""
        self.run(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active",
            "DROP SCHEMA public CASCADE",
            "CREATE SCHEMA public",
        )

    def staged(self) -> list[tuple[Any, ...]]:
        """The staging tables that are there."""
        return self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'millstream' AND starts_with(tablename::text, 'stage_')")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Database]:
    """One server for the whole run."""
    try:
        server = start_postgres()
    except SetupError as error:
        if error.diagnostics[0].code != "MS042":
            raise
        pytest.skip(f"there is no Postgres here: {error.diagnostics[0].message}")
    with server:
        yield Database(server)
