"""Killed between a sink's commit and Spark's, the next run recognises the epoch. Without the ledger it would write it twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import await_end

from millstream import read_committed
from millstream.checkpoint.deliveries import Deliveries
from millstream.checkpoint.layout import QueryCheckpoint
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.spec.files import load_pipeline

pytestmark = pytest.mark.spark
PIPELINE = """
sources:
  numbers: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: bounded}, max_files_per_epoch: 1}
sinks:
  one: {type: file, from: numbers, path: out/one, format: parquet}
  two: {type: file, from: numbers, path: out/two, format: parquet}
"""
# ends the process group at a chosen moment of a chosen epoch; the product itself has no such switch
SABOTAGE = """
import os, signal, sys
from millstream.connectors.file.sink import FileSinkRun
from millstream.engine.epoch.loop import EpochLoop
where, number = sys.argv[1], int(sys.argv[2])
stage, commit, run = FileSinkRun.stage, FileSinkRun.commit, EpochLoop._run
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def staged(self, frame, epoch):
    result = stage(self, frame, epoch)
    if where == "stage" and epoch.number == number and epoch.sink == "two": die()
    return result
def committed(self, work, epoch):
    commit(self, work, epoch)
    if where == "between-sinks" and epoch.number == number and epoch.sink == "one": die()
def ran(self, frame, n):
    run(self, frame, n)
    if where == "before-spark" and n == number: die()
FileSinkRun.stage, FileSinkRun.commit, EpochLoop._run = staged, committed, ran
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
    """A project whose run was killed in each of its first epochs, somewhere else each time; and a copy of it."""
    folder = tmp_path_factory.mktemp("killed")
    write(folder)
    for epoch, where in enumerate(["stage", "between-sinks", "before-spark"]):
        assert killed(folder, where, epoch)
    await_end(folder)
    return folder, shutil.copytree(folder, tmp_path_factory.mktemp("copy"), dirs_exist_ok=True)


@pytest.fixture
def cut_off(killed_project: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project as the last kill left it."""
    folder, copy = killed_project
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path) -> None:
    (folder / "p.yaml").write_text(PIPELINE)
    (folder / "in").mkdir()
    for number in range(4):
        path = folder / f"in/{number}.json"
        path.write_text("".join(json.dumps({"id": number * 100 + i}) + "\n" for i in range(50)))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def killed(folder: Path, where: str, epoch: int) -> bool:
    command = [sys.executable, "-c", SABOTAGE, where, str(epoch)]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=400, check=False).returncode == -signal.SIGKILL


def repeated(sink: str) -> int:
    counts = Counter(read_committed(f"out/{sink}")["id"].to_pylist())
    assert set(counts) == {number * 100 + i for number in range(4) for i in range(50)}
    return sum(count - 1 for count in counts.values())


def test_every_row_arrives_once_wherever_it_is_killed(cut_off: Path, run: Callable[..., Report]) -> None:
    run(load_pipeline(cut_off / "p.yaml"))
    assert (repeated("one"), repeated("two")) == (0, 0)


def test_without_the_ledger_the_epoch_is_written_twice(cut_off: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that is somebody else after its start: no target recognises its epochs."""
    monkeypatch.setattr(QueryCheckpoint, "query_id", lambda self: "somebody else")
    monkeypatch.setattr(Deliveries, "find_lacks", lambda *_: [])  # which would notice at once
    run(load_pipeline(cut_off / "p.yaml"))
    assert repeated("one") == 50


def test_a_checkpoint_from_another_history_is_refused(project: Path, run: Callable[..., Report]) -> None:
    run(load_pipeline(project / "p.yaml"))
    offsets = project / ".millstream/p/queries/numbers"
    for name in ("offsets/3", "commits/3", "offsets/.3.crc", "commits/.3.crc"):
        (offsets / name).unlink(missing_ok=True)
    (project / ".millstream/p/_millstream/finished/numbers.json").unlink()
    with pytest.raises(RunError, match="MS055"):
        run(load_pipeline(project / "p.yaml"))
    assert repeated("one") == 0
