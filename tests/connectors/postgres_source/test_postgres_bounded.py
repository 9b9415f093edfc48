"""A bounded read: ranges of the key side by side, one end, and a run that was killed goes on."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.postgres_source.conftest import delivered
from tests.connectors.postgres_source.follower import code
from tests.connectors.postgres_source.killed import start
from tests.servers.postgres import Database

from millstream.connectors.postgres.source import PostgresSource
from millstream.dev.postgres import NAME
from millstream.errors import RunError
from millstream.plan.components import NodeContext
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
Read = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def pairs(postgres: Database) -> str:
    """A table with a key of two columns, one of them with texts that need care."""
    name = f"{postgres.schema()}.pairs"
    postgres.run(f"CREATE TABLE {name} (a text, b int, v int, PRIMARY KEY (a, b))")
    postgres.run(f"INSERT INTO {name} SELECT '''\\' || (n % 7), n, n FROM generate_series(1, 1000) n", f"ANALYZE {name}")
    return name


def test_ranges_of_the_key_make_the_table(pairs: str, read: Read, tmp_path: Path) -> None:
    rows = read(pairs, "mode: {type: bounded}, partitions: 4, columns: [v], where: 'v % 2 = 0 -- even'")
    assert sorted(row["v"] for row in rows) == list(range(2, 1001, 2)) and set(rows[0]) == {"v"}
    bounds = json.loads(next(tmp_path.rglob("nodes/t/ranges.json")).read_text())["bounds"]
    assert len(bounds) == 4 and bounds[-1] == ["'\\6", "1000"]


def test_a_run_that_is_killed_goes_on_and_ends_where_the_first_one_would_have(
    postgres: Database, pairs: str, source: Callable[..., Topology], run: Callable[..., Any], tmp_path: Path
) -> None:
    topology = source(pairs, "mode: {type: bounded}, partitions: 2, max_rows_per_epoch: 300")
    assert start(tmp_path, "before-commit", 1) == -signal.SIGKILL
    assert 0 < len(delivered(tmp_path)) < 1000
    postgres.run(f"INSERT INTO {pairs} VALUES ('zzz', 1, -1)")
    run(topology)
    assert sorted(row["v"] for row in delivered(tmp_path)) == list(range(1, 1001))
    assert len(list((tmp_path / ".millstream/p/queries/t/commits").glob("[0-9]*"))) > 2


def test_tables_without_rows_or_without_a_key_are_read_too(postgres: Database, table: str, read: Read) -> None:
    postgres.run(f"CREATE VIEW {table}view AS SELECT 1 AS id, 'a' AS name")
    assert read(table) == []
    assert read(f"{table}view", "mode: {type: bounded}", reset=("t",)) == [{"id": 1, "name": "a"}]


def test_a_value_that_does_not_fit_is_told_from_the_worker(postgres: Database, table: str, read: Read) -> None:
    postgres.run(f"ALTER TABLE {table} ADD COLUMN price numeric(10, 2)", f"INSERT INTO {table} VALUES (1, 'a', 'NaN')")
    with pytest.raises(RunError) as raised:
        read(table)
    assert code(raised) == "MS129" and "`price`" in str(raised.value) and "types: {price: string}" in str(raised.value)
    rows = read(table, "mode: {type: bounded}, types: {price: string}", reset=("t",))
    assert rows == [{"id": 1, "name": "a", "price": "NaN"}]


def test_a_cursor_is_followed_over_runs(postgres: Database, table: str, read: Read) -> None:
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    options = "mode: {type: incremental, cursor: id}"
    assert read(table, options) == [{"id": 1, "name": "a"}]
    postgres.run(f"INSERT INTO {table} VALUES (2, 'b'), (3, 'c')")
    assert sorted(row["id"] for row in read(table, options)) == [1, 2, 3]


def test_a_table_is_a_plain_frame_too(postgres: Database, pairs: str, spark: Any, context: Callable[..., NodeContext]) -> None:
    login = {"host": "127.0.0.1", "port": postgres.server.port, "database": NAME, "user": NAME, "password": NAME}
    frame = PostgresSource(table=pairs, where="b > 10", partitions=3, **login).open(context()).table(spark)
    assert frame.count() == 990 and frame.rdd.getNumPartitions() == 3
