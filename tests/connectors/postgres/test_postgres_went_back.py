"""A database that was restored to an older state, or is another one, is noticed; what it lacks can be delivered again."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.servers.postgres import Database

from millstream import read_committed
from millstream.connectors.postgres.write.ledger import Ledger
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.components import Epoch, LedgerEntry
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
TEXT = """
    connections: {{postgres: {connection}}}
    sources:
      rows: {{type: file, path: in, format: json, schema: {{id: int64}}, max_files_per_epoch: 1}}
    sinks:
      pg: {{type: postgres, from: rows, schema: {schema}, table: t, metadata_schema: {schema}_own}}
      sums: {{type: postgres_aggregate, from: rows, schema: {schema}, landing_table: l, agg_table: a, metadata_schema: {schema}_own,
        aggregate: {{n: {{fn: count, from: id}}}}}}
      files: {{type: file, from: rows, path: out, format: parquet}}
    settings: {{trigger: {{type: available_now}}}}
"""


class Stage:
    """One pipeline into one schema, whose tables can be set back."""

    def __init__(self, database: Database, load: Callable[..., Topology], run: Callable[..., Report]) -> None:
        self._database, self._load, self._run, self.schema, self.files = database, load, run, database.schema(), 0
        self.text = TEXT

    def go(self, files: int = 0, connection: str = "", **options: object) -> Report:
        Path("in").mkdir(exist_ok=True)
        for number in range(self.files, self.files + files):
            path = Path(f"in/{number}.json")
            path.write_text("".join(json.dumps({"id": number * 10 + i}) + "\n" for i in range(10)))
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        self.files += files
        return self._run(self._load(self.text.format(connection=connection or self._database.connection, schema=self.schema)), **options)

    def refused(self, **options: object) -> list[str]:
        with pytest.raises(RunError) as caught:
            self.go(**options)
        return [f"{each.code} {each.message}" for each in caught.value.diagnostics]

    def set_back(self) -> None:
        """What a restored backup looks like: rows and ledger of two epochs, while the checkpoint has seen five."""
        self.go(2)
        tables = [f"{self.schema}.t", f"{self.schema}.l", f"{self.schema}.a", f"{self.schema}_own.ledger"]
        self._database.run(*[f"CREATE TABLE {table}_older AS TABLE {table}" for table in tables])
        self.go(3)
        self._database.run(*[f"TRUNCATE {table}; INSERT INTO {table} TABLE {table}_older" for table in tables])

    def rows(self) -> int:
        ((rows, ids),) = self._database.rows(f"SELECT count(*), count(DISTINCT id) FROM {self.schema}.t")
        assert rows == ids
        return int(rows)

    def whole(self) -> bool:
        files = Counter(read_committed("out")["id"].to_pylist()) == Counter(range(self.files * 10))
        counted = self._database.rows(f"SELECT n FROM {self.schema}.a") == [(self.files * 10,)]
        return files and counted and self.rows() == self.files * 10


@pytest.fixture
def stage(postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> Stage:
    return Stage(postgres, pipeline, run)


def test_a_restored_database_is_noticed_and_gets_what_it_lacks(stage: Stage) -> None:
    stage.set_back()
    said = stage.refused(files=1)
    assert [each.partition(", which")[0] for each in said] == [
        f"MS140 the target of sink `{name}` lacks epochs 2 to 4" for name in ("pg", "sums")
    ]
    stage.go(redeliver=True)
    assert stage.whole()


def test_another_server_that_is_empty_is_noticed(stage: Stage, postgres: Database) -> None:
    stage.go(2)
    other = postgres.connection.replace("database: dev", f"database: {stage.schema}_other")
    assert other != postgres.connection
    postgres.run(f"CREATE DATABASE {stage.schema}_other")
    with psycopg.connect(postgres.address.to(dbname=f"{stage.schema}_other").text, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {stage.schema}")
    assert "MS140" in stage.refused(files=1, connection=other)[0]
    report = stage.go(connection=other, accept_target=True)
    assert report.notes == ("accepted as missing in the target: `pg` epochs 0 to 1, `sums` epochs 0 to 1",)
    with psycopg.connect(postgres.address.to(dbname=f"{stage.schema}_other").text) as connection:
        assert connection.execute(f"SELECT count(*) FROM {stage.schema}.t").fetchone() == (10,)


def test_a_job_that_is_done_asks_the_database(stage: Stage, postgres: Database) -> None:
    stage.text = TEXT.replace("max_files", "mode: {{type: bounded}}, max_files")
    stage.go(2)
    assert "nothing is left to do" in stage.go().notes[0]
    postgres.run(f"DROP SCHEMA {stage.schema}_own CASCADE")
    assert [each[:5] for each in stage.refused()] == ["MS140", "MS140"]


def test_a_database_that_goes_back_during_a_run_is_noticed_by_the_next_transaction(postgres: Database) -> None:
    ledger = Ledger(postgres.schema())
    epoch = Epoch("q", "pg", 5, "d", "", before=LedgerEntry(4, "c"))
    with psycopg.connect(postgres.address.text) as connection:
        ledger.create(connection)
        ledger.claim(connection, Epoch("q", "pg", 2, "b", ""))
        ledger.write(connection, Epoch("q", "pg", 2, "b", ""))
        with pytest.raises(RunError, match="it held epoch 4, and holds epoch 2 now"):
            ledger.claim(connection, epoch)
