"""The golden queries equal the golden results when the whole process group is killed three times, at seeded moments, and started again."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.conformance.goldens import LATER, golden, names, project, result

pytestmark = [pytest.mark.spark, pytest.mark.timeout(2400), pytest.mark.skipif(not names(), reason="the golden data is not there")]
COMMAND = [sys.executable, "-m", "millstream.cli", "run", "p.yaml"]


@pytest.fixture(scope="module")
def survived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    project(folder)
    chance = random.Random(20)
    for _ in range(3):
        kill_after(folder, committed(folder) + chance.randint(15, 35), chance.uniform(0, 0.5))
    run = subprocess.run(COMMAND, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
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


@pytest.mark.parametrize("name", [name for name in names() if name not in LATER])
def test_the_result_survives_being_killed(survived: Path, name: str) -> None:
    assert result(survived, name) == golden(name)
