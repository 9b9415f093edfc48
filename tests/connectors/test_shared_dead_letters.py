"""Two queries send their rejects to one sink: each has its own ledger there, and neither disturbs an epoch of the other."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database

from millstream.clients.storage import LocalStorage
from millstream.connectors.postgres.sink import PostgresSink
from millstream.dev.postgres import NAME
from millstream.plan.components import Epoch, NodeContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PIPELINE = """
connections: {{postgres: {postgres}, kafka: {{bootstrap_servers: "{kafka}"}}}}
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
    schema, before = postgres.schema(), postgres.staged()
    run(pipeline(PIPELINE.format(postgres=postgres.connection, kafka=kafka.address, sink=f"type: postgres, schema: {schema}, table: bad")))
    rows = [{"node": node, "raw": raw} for node, raw in postgres.rows(f"SELECT node, raw FROM {schema}.bad")]
    assert rejects(rows) == EXPECTED
    assert postgres.staged() == before


def test_staged_rows_outlive_the_start_of_another_query_and_the_end_of_another_run(
    postgres: Database, spark: SparkSession, tmp_path: Path
) -> None:
    options = {"host": "127.0.0.1", "port": postgres.server.port, "database": NAME, "user": NAME, "password": NAME}
    sink = PostgresSink(table="t", schema=postgres.schema(), **options)
    context = NodeContext("bad", tmp_path, LocalStorage(tmp_path / "node"), pipeline="p")
    run, other_run = sink.open(context), sink.open(context)
    own, others = (Epoch(f"{uuid.uuid4()}", "bad", 0, "d", "2024-01-01 00:00:00") for _ in range(2))
    run.prepare(spark)
    before, staged = postgres.staged(), run.stage(spark.range(3), own)
    run.prepare(spark)
    run.ledger(spark, others)
    other_run.abort(other_run.stage(spark.range(1), own), own)
    other_run.close()
    run.commit(staged, own)
    assert postgres.rows(f"SELECT count(*) FROM {sink.db_schema}.t") == [(3,)]
    run.stage(spark.range(3), own)  # its driver dies
    sink.open(context).ledger(spark, own)
    assert postgres.staged() == before
