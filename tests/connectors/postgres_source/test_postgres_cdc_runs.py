"""Changes through whole runs: killed wherever it hurts, every change is delivered once, and the slot follows."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.connectors.postgres_source.conftest import delivered
from tests.connectors.postgres_source.follower import code, ops
from tests.connectors.postgres_source.killed import start
from tests.servers.postgres import Database

from millstream.connectors.file.sink import FileSinkRun
from millstream.engine.epoch.loop import EpochLoop
from millstream.errors import RunError
from millstream.plan.topology import Topology

pytestmark = pytest.mark.spark
Run = Callable[..., Any]
SLOT = "millstream_p_t"


@pytest.fixture(autouse=True)
def _no_slots(postgres: Database) -> Iterator[None]:
    yield
    postgres.run(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{SLOT}'")
    postgres.run(f"DROP PUBLICATION IF EXISTS {SLOT}")


def confirmed(postgres: Database) -> str:
    found: str = postgres.rows(f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{SLOT}'")[0][0]
    return found


class Dead(Exception):  # noqa: N818 — a death, not an error
    """What stands for the end of the process."""


def test_wherever_a_run_ends_every_change_comes_once(
    postgres: Database,
    table: str,
    source: Callable[..., Topology],
    run: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dying(*_: Any) -> None:
        raise Dead

    def attempt(place: Any, name: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, dying)
            with pytest.raises(RunError):
                run(topology)

    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    topology = source(table, "mode: {type: cdc}")
    attempt(FileSinkRun, "commit")
    assert delivered(tmp_path) == []
    postgres.run(f"INSERT INTO {table} VALUES (2, 'b')")
    run(topology)  # the epoch that was half done, and what came since
    assert ops(delivered(tmp_path)) == [("i", 1, "a"), ("i", 2, "b")]
    before = confirmed(postgres)
    postgres.run(f"UPDATE {table} SET id = 3 WHERE id = 2")
    attempt(EpochLoop, "_finish")  # the sink has the epoch, Spark does not
    assert confirmed(postgres) == before
    postgres.run(f"DELETE FROM {table} WHERE id = 1")
    assert start(tmp_path, "before-telling") == -signal.SIGKILL  # Spark has the epoch, and nobody was told
    assert confirmed(postgres) == before
    report = run(topology)
    rows = sorted(delivered(tmp_path), key=lambda row: row["_seq"])
    assert ops(rows) == [("i", 1, "a"), ("i", 2, "b"), ("d", 2, None), ("i", 3, "b"), ("d", 1, None)]
    assert [row["_seq"] for row in rows] == list(range(5)) and report is not None
    assert confirmed(postgres) > before
    assert not list((tmp_path / ".millstream").rglob("spool/*.arrow"))


def test_a_running_pipeline_outlives_the_server(
    postgres: Database, table: str, source: Callable[..., Topology], run: Run, tmp_path: Path
) -> None:
    topology = source(table, "mode: {type: cdc}, poll_interval: 100ms", "{restart: {limit: 20, backoff: 1s}}")
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, topology, stop=stop)
        try:
            for number in range(3):
                postgres.run(f"INSERT INTO {table} VALUES ({number}, 'a')")
                until(lambda: len(delivered(tmp_path)) > number)  # noqa: B023 — asked before the number changes
                if number == 1:
                    postgres.server.restart()
        finally:
            stop.set()
            running.result(60)
    assert ops(delivered(tmp_path)) == [("i", number, "a") for number in range(3)]


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_stops_a_run_is_told_with_its_code_and_can_be_let_pass(
    postgres: Database, table: str, source: Callable[..., Topology], run: Run, tmp_path: Path
) -> None:
    topology = source(table, "mode: {type: cdc}")
    run(topology)
    postgres.run(f"TRUNCATE {table}")
    with pytest.raises(RunError) as raised:
        run(topology)
    assert code(raised) == "MS127"
    topology = source(table, "mode: {type: cdc}, truncate: ignore")
    run(topology)
    postgres.run(f"SELECT pg_drop_replication_slot('{SLOT}')")
    with pytest.raises(RunError) as raised:
        run(topology)
    assert code(raised) == "MS122"
    postgres.run(f"INSERT INTO {table} VALUES (1, 'a')")
    run(topology, reset=("t",))
    assert ops(delivered(tmp_path)) == [("i", 1, "a")]
