"""The pipeline that the product was born from: Kafka, a condition in SQL, Postgres. Its YAML runs as it was written."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.seed import SEED
from tests.servers.kafka import Cluster
from tests.servers.postgres import Database
from tests.servers.registry import Schemas, avro, record

from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
CONFIG = """\
connections:
  kafka: {{bootstrap_servers: "{servers}", schema_registry: {{url: "{registry}"}}}}
  postgres: {connection}
settings: {{trigger: {{type: available_now}}}}
"""


def test_the_seed_runs_unchanged(
    kafka: Cluster,
    registry: Schemas,
    postgres: Database,
    run: Callable[..., Report],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Servers and logins come from `millstream.yaml` beside it."""
    monkeypatch.chdir(tmp_path)
    kafka.topic(2, name="raw.event.transaction")
    schema = record(("id", "long"), ("amount", "double"), ("note", "string"), name=f"T{uuid.uuid4().hex[:6]}")
    id_ = registry.register("raw.event.transaction-value", schema)
    rows = [{"id": n, "amount": n * 100.0, "note": f"n{n}"} for n in range(1, 21)]
    kafka.send("raw.event.transaction", [avro(id_, schema, row) for row in rows])
    (tmp_path / "seed.yaml").write_text(SEED)
    config = CONFIG.format(servers=kafka.address, registry=registry.url, connection=postgres.connection)
    (tmp_path / "millstream.yaml").write_text(config)
    postgres.run("DROP TABLE IF EXISTS public.large_transactions")
    run(load_pipeline(tmp_path / "seed.yaml"))
    kafka.send("raw.event.transaction", [avro(id_, schema, {"id": 20, "amount": 5000.0, "note": "again"})])
    run(load_pipeline(tmp_path / "seed.yaml"))
    found = postgres.rows("SELECT id, note FROM public.large_transactions ORDER BY id")
    assert found == [*((n, f"n{n}") for n in range(11, 20)), (20, "again")]
