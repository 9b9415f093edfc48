"""The whole process group is killed while it follows a busy table, at moments that a seed chooses, and started again: equal in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.arena import SEED
from tests.connectors.postgres.trip import Trip, trip
from tests.servers.postgres import Database

from millstream.observe.report import Report
from millstream.plan.topology import Topology

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
KILLS = 1
FOR_EVER = "trigger: {type: continuous}"


def transaction(chance: random.Random) -> tuple[list[Any], int]:
    steps: list[Any] = []
    for _ in range(chance.randrange(1, 5)):
        what, key, row = chance.choice(["put", "set", "delete", "renew", "move"]), chance.randrange(20), None
        if what in {"put", "set", "renew"}:
            row = {"v": chance.randrange(5, 16), "g": chance.choice("ab")}
        steps.append((what, key, chance.randrange(20) if what == "move" else row))
    return steps, chance.randrange(6)


@contextmanager
def running(folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """The pipeline, until it is killed."""
    command, quiet = [sys.executable, "-m", "millstream.cli", "run", f"{name}.yaml", "--profile", "short"], subprocess.DEVNULL
    with (folder / "log").open("ab") as log, subprocess.Popen(command, cwd=folder, start_new_session=True, stdout=quiet, stderr=log) as one:
        try:
            yield one
        finally:
            os.killpg(one.pid, signal.SIGKILL)


def epochs(folder: Path) -> int:
    return len(list(folder.glob("*/queries/t/commits/[0-9]*")))


def be_busy_until(tables: Trip, chance: random.Random, true: Callable[[], bool], folder: Path) -> None:
    deadline = time.monotonic() + 300
    while not true():
        assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
        tables.change([transaction(chance)])
        time.sleep(0.05)


def test_killed_and_started_again_the_tables_are_equal(
    postgres: Database, pipeline: Callable[..., Topology], run: Callable[..., Report], tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    with trip(postgres) as tables:
        pipeline(tables.text(FOR_EVER), tables.schema)
        for _ in range(KILLS):
            done = epochs(tmp_path) + chance.randrange(1, 5)
            with running(tmp_path, tables.schema) as one:
                be_busy_until(tables, chance, lambda: epochs(tmp_path) >= done, tmp_path)  # noqa: B023 — asked before it changes
                moment = time.monotonic() + chance.random()
                be_busy_until(tables, chance, lambda: time.monotonic() > moment, tmp_path)  # noqa: B023 — asked before it changes
                assert one.poll() is None, (tmp_path / "log").read_text()[-3000:]
        assert tables.differences(), "nothing was left to do: the kills proved nothing"
        run(pipeline(tables.text(), tables.schema))
        assert tables.differences() == {}
        print(f"seed {SEED}: {KILLS} kills, {epochs(tmp_path)} epochs")
