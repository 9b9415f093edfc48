"""The server, and pipelines that end in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology

PIPELINE = """
    connections: {{postgres: {connection}}}
    sources:
      rows: {{type: memory, schema: {{{columns}}}, rows: {rows}}}
    sinks:
      pg: {{type: postgres, from: rows, schema: {schema}, table: t, {options}}}
"""


@pytest.fixture
def write(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Callable[..., Report]:
    """Write rows to the table `t` of a schema."""

    def go(schema: str, columns: str, rows: list[Any], options: str = "", name: str = "p", **more: object) -> Report:
        text = PIPELINE.format(connection=postgres.connection, columns=columns, rows=rows, schema=schema, options=options)
        return run(pipeline(text, name), **more)

    return go
