"""The golden queries equal the golden results when the whole process group is killed at a seeded moment, and another run goes on.

`make chaos` kills it three times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.chaos.arena import KILLS, SEED
from tests.conformance.goldens import CHANGED, golden, names, project, result

from millstream.spec.files import load_pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(2400), pytest.mark.skipif(not names(), reason="the golden data is not there")]
COMMAND = [sys.executable, "-m", "millstream.cli", "run", "p.yaml"]


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    from millstream.engine.engine import SparkEngine
    from millstream.plan.run_options import RunOptions

    folder = tmp_path_factory.mktemp("killed")
    project(folder, epochs=6 if KILLS else 4)
    chance = random.Random(SEED)
    for _ in range(min(KILLS, 3) or 1):
        kill_after(folder, committed(folder) + chance.randint(15, 35), chance.uniform(0, 0.5))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        SparkEngine(spark).run(load_pipeline(folder / "p.yaml"), RunOptions())
    return folder


def committed(folder: Path) -> int:
    return sum(1 for path in folder.glob(".millstream/goldens/queries/*/commits/*") if path.name.isdigit())


def kill_after(folder: Path, epochs: int, pause: float) -> None:
    """Start a run, and end it in the middle of an epoch after this many."""
    process = subprocess.Popen(COMMAND, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 300
    while committed(folder) < epochs and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(pause)
    assert process.poll() is None, "the run ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("name", [name for name in names() if name not in CHANGED])
def test_the_result_survives_being_killed(survived: Path, name: str) -> None:
    assert result(survived, name) == golden(name)
