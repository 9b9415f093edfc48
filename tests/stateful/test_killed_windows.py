"""A windowed query that is killed at its worst moments: output, state and watermark of the next runs equal those of a straight run."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from millstream import committed_files

pytestmark = pytest.mark.spark
PIPELINE = """
name: p
sources:
  clicks:
    type: file
    path: in
    format: json
    schema: {user: int64, at: timestamp}
    mode: {type: bounded}
    max_files_per_epoch: 1
    event_time: {column: at, watermark: 5s}
transforms:
  counted: {type: window, from: clicks, key_by: [user], window: {type: tumbling, size: 10s}, aggregate: {n: count(*)}, late: drop}
sinks:
  out: {type: file, from: counted, path: out, format: json}
"""
# ends the process at a chosen moment; `flush` means the last epoch, which closes everything
SABOTAGE = """
import os, signal, sys
from millstream.connectors.file.sink import FileSink
from millstream.engine import epochs, frames
moment, when, control = sys.argv[1:4]
stage, run = FileSink.stage, epochs.EpochLoop._run
def chosen(loop, number):
    return loop.checkpoint.entry(number).flushes if when == "flush" else number == int(when)
current = []
def staged(self, frame, epoch):
    result = stage(self, frame, epoch)
    if moment == "staged" and current[0]: os.kill(os.getpid(), signal.SIGKILL)
    return result
def ran(self, frame, number):
    current[:] = [chosen(self, number)]
    run(self, frame, number)
    if moment == "committed" and current[0]: os.kill(os.getpid(), signal.SIGKILL)
FileSink.stage, epochs.EpochLoop._run = staged, ran
if control == "no-run":
    frames.EpochFrames.run = lambda self: None
if control == "no-flush":
    from millstream.engine.checkpoint import QueryCheckpoint
    QueryCheckpoint.plan_flush = lambda self, time_ms: False
sys.argv = ["millstream", "run", "p.yaml"]
from millstream.cli import main
main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    for number in range(5):
        add(tmp_path, number)
    return tmp_path


def add(folder: Path, number: int) -> None:
    rows = [{"user": i % 3, "at": f"2024-01-01T00:{number:02}:{i:02}Z"} for i in range(0, 60, 4)]
    path = folder / f"in/{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def start(folder: Path, moment: str, when: str = "-1", control: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SABOTAGE, moment, when, control]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def windows(folder: Path) -> Counter[tuple[int, str, int]]:
    lines = [line for file in committed_files(str(folder / "out")) for line in Path(file).read_text().splitlines()]
    return Counter((row["user"], row["window_start"], row["n"]) for row in map(json.loads, lines))


def expected(files: int = 5) -> Counter[tuple[int, str, int]]:
    seen = Counter((i % 3, f"2024-01-01T00:{n:02}:{i // 10 * 10:02}.000000Z") for n in range(files) for i in range(0, 60, 4))
    return Counter((user, window, n) for (user, window), n in seen.items())


@pytest.mark.parametrize(("moment", "when"), [("committed", "3"), ("staged", "flush"), ("committed", "flush")])
def test_every_window_comes_out_once_wherever_it_is_killed(project: Path, moment: str, when: str) -> None:
    assert start(project, moment, when).returncode == -9
    add(project, 7)  # arrives while nobody reads: a bounded input is what was there at the first start
    again = start(project, "")
    assert again.returncode == 0, again.stderr[-1500:]
    assert windows(project) == expected()
    third = start(project, "")
    assert "this job was done at" in third.stdout + third.stderr and windows(project) == expected()


def test_without_the_planned_epoch_the_last_window_is_missing(project: Path) -> None:
    assert start(project, "", control="no-flush").returncode == 0
    assert windows(project) < expected()


def test_without_running_a_skipped_epoch_spark_loses_its_state(project: Path) -> None:
    assert start(project, "committed", "3").returncode == -9
    again = start(project, "", control="no-run")
    assert again.returncode != 0 or windows(project) != expected()
