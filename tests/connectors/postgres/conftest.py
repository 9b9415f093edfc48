"""The server, and a pipeline from one of its tables into a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import Database, postgres

from millstream import read_committed
from millstream.observe.report import Report
from millstream.plan.topology import Topology

__all__ = ["postgres"]

Rows = list[dict[str, Any]]
PIPELINE = """
    connections: {{postgres: {connection}}}
    sources:
      t: {{type: postgres, table: {table}, {options}}}
    sinks:
      out: {{type: file, from: t, path: out, format: parquet}}
    settings: {{trigger: {{type: available_now}}{more}}}
"""


@pytest.fixture
def source(pipeline: Callable[..., Topology], postgres: Database) -> Callable[..., Topology]:
    """A pipeline from a table into files."""

    def make(table: str, options: str = "mode: {type: bounded}", more: str = "") -> Topology:
        return pipeline(PIPELINE.format(connection=postgres.connection, table=table, options=options, more=more))

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
    found: Rows = read_committed(str(folder / "out")).to_pylist()
    return found
