"""The golden Debezium stream from Kafka through SQL to Postgres: the tables equal the golden ones, straight and with the driver killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.chaos.arena import KILLS, SEED
from tests.conformance.goldens import CHANGED, HOME, golden, names, normal, query
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database

from millstream.engine.engine import SparkEngine
from millstream.plan.run_options import RunOptions
from millstream.spec.files import load_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200), pytest.mark.skipif(not names(), reason="the golden data is not there")]
COLUMNS = "id: int32, customer_name: string, product_name: string, quantity: int32, price: float64, order_date: int64, status: string"
PIPELINE = """
name: debezium
connections: {{kafka: {{bootstrap_servers: "{servers}"}}, postgres: {connection}}}
sources:
  dbz:
    type: kafka
    topic: {topic}
    format: json
    envelope: debezium
    schema: {{{columns}}}
    mode: {{type: bounded}}
    max_rows_per_epoch: 100
    primary_key: id
transforms:
  passed: {{type: sql, sql: "{passing}"}}
  totals: {{type: sql, sql: "{adding}"}}
sinks:
  pg: {{type: postgres, from: passed, schema: {schema}, table: debezium_pass_through, primary_key: id}}
  pg.totals: {{type: postgres, from: totals, schema: {schema}, table: debezium_agg}}
settings: {{checkpoint: ck}}
"""


@pytest.fixture
def written(kafka: Cluster, postgres: Database, tmp_path: Path) -> str:
    """The pipeline beside the test; its schema."""
    topic, schema = kafka.topic(1), postgres.schema()
    kafka.send(topic, (HOME / "inputs" / "aggregate_updates.json").read_text().splitlines())
    options = {"servers": kafka.address, "connection": postgres.connection, "topic": topic, "schema": schema}
    texts = {"passing": query("debezium_pass_through").replace("\n", " "), "adding": query("debezium_agg").replace("\n", " ")}
    (tmp_path / "p.yaml").write_text(PIPELINE.format(columns=COLUMNS, **texts, **options))
    return schema


def equals_golden(postgres: Database, schema: str) -> bool:
    with psycopg.connect(postgres.address.text, row_factory=dict_row) as connection:
        tables = {name: Counter(normal(row) for row in connection.execute(f"SELECT * FROM {schema}.{name}")) for name in CHANGED}
    return tables == {name: golden(name) for name in CHANGED}


def test_the_table_equals_the_golden_one(
    written: str, postgres: Database, spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = SparkEngine(spark).run(load_pipeline(tmp_path / "p.yaml"), RunOptions())  # type: ignore[arg-type]  # the warm session
    assert all(facts.epochs >= 6 for facts in report.queries.values())
    assert equals_golden(postgres, written)


@pytest.mark.skipif(not KILLS, reason="`make chaos` runs it; test_killed_servers.py kills at chosen steps")
def test_it_survives_being_killed(written: str, postgres: Database, spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "millstream.cli", "run", "p.yaml"]
    chance, commits = random.Random(SEED), tmp_path / "ck/queries/totals/commits"
    for wanted in (2, 5):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 400
        while len(list(commits.glob("[0-9]*"))) < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 0.3))
        assert process.poll() is None, "the run ended before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    monkeypatch.chdir(tmp_path)
    SparkEngine(spark).run(load_pipeline(tmp_path / "p.yaml"), RunOptions())  # type: ignore[arg-type]  # the warm session
    assert equals_golden(postgres, written)
