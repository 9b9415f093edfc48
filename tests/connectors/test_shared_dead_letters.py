"""Two queries send their rejects to one sink: each has its own ledger there, and neither disturbs an epoch of the other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database

pytestmark = pytest.mark.spark
PIPELINE = """
connections: {{postgres: {postgres}, kafka: {{bootstrap_servers: "{kafka}", security_protocol: PLAINTEXT}}}}
sources:
  one: {{type: generator, rows: 60, rows_per_epoch: 10, fields: {{n: {{type: sequence}}}}}}
  two: {{type: generator, rows: 60, rows_per_epoch: 10, fields: {{n: {{type: sequence}}}}}}
transforms:
  first: {{type: sql, sql: "SELECT CAST(concat('x', n) AS int) AS n FROM one", on_error: {{dead_letter: bad}}}}
  second: {{type: sql, sql: "SELECT CAST(concat('x', n) AS int) AS n FROM two", on_error: {{dead_letter: bad}}}}
sinks:
  out1: {{type: blackhole, from: first}}
  out2: {{type: blackhole, from: second}}
  bad: {{{sink}}}
settings: {{restart: {{limit: 0}}}}
"""
EXPECTED = Counter({(node, n): 1 for node in ("first", "second") for n in range(60)})


def rejects(rows: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    return Counter((row["node"], json.loads(row["raw"])["n"]) for row in rows)


def test_kafka(kafka: Cluster, postgres: Database, pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    topic = kafka.topic(2)
    run(pipeline(PIPELINE.format(postgres=postgres.connection, kafka=kafka.address, sink=f"type: kafka, topic: {topic}, format: json")))
    assert rejects([json.loads(value) for value in kafka.read(topic, 120)]) == EXPECTED


def test_postgres(kafka: Cluster, postgres: Database, pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    table, before = f"{postgres.schema()}.bad", postgres.staged()
    run(pipeline(PIPELINE.format(postgres=postgres.connection, kafka=kafka.address, sink=f"type: postgres, table: {table}")))
    rows = [{"node": node, "raw": raw} for node, raw in postgres.rows(f"SELECT node, raw FROM {table}")]
    assert rejects(rows) == EXPECTED
    assert postgres.staged() == before
