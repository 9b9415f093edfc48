"""A windowed query that is killed at its worst moments: output, state and watermark of the next runs equal those of a straight run."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.processes import await_end

from millstream import committed_files
from millstream.checkpoint.layout import QueryCheckpoint
from millstream.engine.epoch.frames import EpochFrames
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

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
from millstream.connectors.file.sink import FileSinkRun
from millstream.engine.epoch.loop import EpochLoop
moment, when = sys.argv[1:3]
stage, run = FileSinkRun.stage, EpochLoop._run
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
FileSinkRun.stage, EpochLoop._run = staged, ran
sys.argv = ["millstream", "run", "p.yaml", "--profile", "short"]
from millstream.cli import main
main()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def killed_project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A project whose run was killed after an epoch that its sink has and Spark has not; and a copy of it."""
    folder = tmp_path_factory.mktemp("killed")
    write(folder)
    assert killed(folder, "committed", "3")
    await_end(folder)
    return folder, shutil.copytree(folder, tmp_path_factory.mktemp("copy"), dirs_exist_ok=True)


@pytest.fixture
def cut_off(killed_project: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project as the kill left it."""
    folder, copy = killed_project
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path) -> None:
    (folder / "p.yaml").write_text(PIPELINE)
    (folder / "in").mkdir()
    for number in range(5):
        add(folder, number)


def add(folder: Path, number: int) -> None:
    rows = [{"user": i % 3, "at": f"2024-01-01T00:{number:02}:{i:02}Z"} for i in range(0, 60, 4)]
    path = folder / f"in/{number}.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def killed(folder: Path, moment: str, when: str) -> bool:
    command = [sys.executable, "-c", SABOTAGE, moment, when]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=400, check=False).returncode == -signal.SIGKILL


def windows(folder: Path) -> Counter[tuple[int, str, int]]:
    lines = [line for file in committed_files(str(folder / "out")) for line in Path(file).read_text().splitlines()]
    return Counter((row["user"], row["window_start"], row["n"]) for row in map(json.loads, lines))


def expected(files: int = 5) -> Counter[tuple[int, str, int]]:
    seen = Counter((i % 3, f"2024-01-01T00:{n:02}:{i // 10 * 10:02}.000000Z") for n in range(files) for i in range(0, 60, 4))
    return Counter((user, window, n) for (user, window), n in seen.items())


def test_every_window_comes_out_once_wherever_it_is_killed(cut_off: Path, run: Callable[..., Report]) -> None:
    add(cut_off, 7)  # arrives while nobody reads: a bounded input is what was there at the first start
    for moment in ("staged", "committed"):
        assert killed(cut_off, moment, "flush")
    for _ in range(2):
        run(load_pipeline(cut_off / "p.yaml"))
        assert windows(cut_off) == expected()


def test_without_the_planned_epoch_the_last_window_is_missing(
    project: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueryCheckpoint, "plan_flush", lambda self, time_ms: False)
    run(load_pipeline(project / "p.yaml"))
    assert windows(project) < expected()


def test_without_running_a_skipped_epoch_spark_loses_its_state(
    cut_off: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EpochFrames, "run", lambda self: None)
    with suppress(MillstreamError):
        run(load_pipeline(cut_off / "p.yaml"))
    assert windows(cut_off) != expected()
