"""An incremental query into Postgres and Kafka is killed at the steps of the protocol: both hold the batch answer, and the same rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.arena import KILLS
from tests.engine.incremental.sabotage import FIRST, STEPS, kill
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database

from millstream.engine.incremental.log import StateLog
from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
CHOSEN = STEPS if KILLS else STEPS[1:3]
ROWS = [{"k": "abcdefgh"[i % 8], "id": i, "v": i % 4, "d": 0.1 * i + 1e6 * (i % 2)} for i in range(96)]
PIPELINE = """
connections: {{kafka: {{bootstrap_servers: "{servers}"}}, postgres: {connection}}}
sources:
  t:
    {{type: file, path: in, format: json, schema: {{k: string, id: int64, v: int64, d: float64}}, mode: {{type: bounded}},
     max_files_per_epoch: 1}}
transforms:
  q: {{type: sql, sql: "SELECT k, sum(d) AS s, max_by(id, v) AS best FROM t GROUP BY k HAVING count(*) % 5 <> 0"}}
sinks:
  {first}: {{type: postgres, from: q, schema: {schema}, table: totals}}
  two: {{type: kafka, from: q, topic: {topic}, format: json}}
"""


@pytest.fixture
def project(kafka: Cluster, postgres: Database, tmp_path: Path) -> tuple[str, str]:
    topic, schema = kafka.topic(1), postgres.schema()
    text = PIPELINE.format(servers=kafka.address, connection=postgres.connection, schema=schema, topic=topic, first=FIRST)
    (tmp_path / "p.yaml").write_text(text)
    (tmp_path / "in").mkdir()
    files = len(CHOSEN) + 1
    for number in range(files):
        path = tmp_path / f"in/{number}.json"
        rows = ROWS[len(ROWS) * number // files : len(ROWS) * (number + 1) // files]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    for epoch, step in enumerate(CHOSEN):
        kill(tmp_path, step, epoch)
    return topic, schema


def _expected() -> set[tuple[str, float]]:
    groups = {k: [row for row in ROWS if row["k"] == k] for k in "abcdefgh"}
    return {(k, round(sum(float(str(row["d"])) for row in rows), 3)) for k, rows in groups.items() if len(rows) % 5}


def _last_of_each_key(kafka: Cluster, topic: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for message in kafka.messages(topic):
        key, value = message.key().decode(), message.value()
        found.pop(key, None)
        found |= {key: json.loads(value)} if value else {}
    return found


def test_both_hold_the_batch_answer(
    project: tuple[str, str],
    kafka: Cluster,
    postgres: Database,
    run: Callable[..., Report],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, schema = project
    monkeypatch.chdir(tmp_path)
    run(load_pipeline(tmp_path / "p.yaml"))
    table = {row[0]: row for row in postgres.rows(f"SELECT k, s, best FROM {schema}.totals")}
    messages = _last_of_each_key(kafka, topic)
    assert {(k, round(row[1], 3)) for k, row in table.items()} == _expected()
    assert {k: (k, row["s"], row["best"]) for k, row in messages.items()} == table


@pytest.mark.skipif(not KILLS, reason="`make chaos` runs it; test_killed.py has this control for files")
def test_without_the_log_it_is_wrong(
    project: tuple[str, str], postgres: Database, run: Callable[..., Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(StateLog, "read", lambda self, spark, schema, entries: spark.createDataFrame([], schema))
    run(load_pipeline(tmp_path / "p.yaml"))
    rows = postgres.rows(f"SELECT k, s FROM {project[1]}.totals")
    assert {(k, round(s, 3)) for k, s in rows} != _expected()
