"""The server, and a pipeline from one of its tables into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.connectors.postgres_source.follower import Follower
from tests.servers.postgres import Database

from millstream import committed_files
from millstream.observe.report import Report
from millstream.plan.topology import Topology

Rows = list[dict[str, Any]]
PIPELINE = """
    connections: {{postgres: {connection}}}
    sources:
      t: {{type: postgres, table: {table}, {options}}}
    sinks:
      out: {{type: file, from: t, path: out, format: parquet}}
    settings: {settings}
"""


@pytest.fixture
def source(pipeline: Callable[..., Topology], postgres: Database) -> Callable[..., Topology]:
    """A pipeline from a table into files."""

    def make(table: str, options: str = "mode: {type: bounded}", settings: str = "{trigger: {type: available_now}}") -> Topology:
        return pipeline(PIPELINE.format(connection=postgres.connection, table=table, options=options, settings=settings))

    return make


@pytest.fixture
def read(source: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path) -> Callable[..., Rows]:
    """Run the pipeline until nothing is left; all rows that have been delivered so far."""

    def go(*arguments: str, **options: Any) -> Rows:
        run(source(*arguments), **options)
        return delivered(tmp_path)

    return go


def delivered(folder: Path) -> Rows:
    """All rows in the files of the sink."""
    files = committed_files(str(folder / "out"))
    tables = [pq.read_table(file, coerce_int96_timestamp_unit="us") for file in files]
    return [row for table in tables for row in table.to_pylist()]


@pytest.fixture
def follow(postgres: Database, tmp_path: Path) -> Iterator[Callable[..., Follower]]:
    """Followers of tables, whose slots and publications are gone in the end."""
    made: list[Follower] = []

    def make(table: str, folder: Path = tmp_path, after: Follower | None = None, **options: Any) -> Follower:
        made.append(Follower(postgres, table, folder, after.slot if after else "", **options))
        made[-1].at = after.at if after else made[-1].at
        return made[-1]

    yield make
    for slot in {follower.slot for follower in made}:
        postgres.run(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{slot}'")
        postgres.run(f"DROP PUBLICATION IF EXISTS {slot}")


@pytest.fixture
def table(postgres: Database) -> str:
    """An empty table with a key."""
    name = f"{postgres.schema()}.t"
    postgres.run(f"CREATE TABLE {name} (id int PRIMARY KEY, name text)")
    return name
