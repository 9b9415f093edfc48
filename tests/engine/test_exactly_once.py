"""Killed between a sink's commit and Spark's, the next run recognises the epoch. Without the ledger it would write it twice."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream import read_committed
from millstream.engine.checkpoint import QueryCheckpoint
from millstream.engine.deliveries import Deliveries
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
from millstream.connectors.file.sink import FileSink
from millstream.engine import epochs
where, number = sys.argv[1], int(sys.argv[2])
stage, commit, run = FileSink.stage, FileSink.commit, epochs.EpochLoop._run
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def staged(self, frame, epoch):
    result = stage(self, frame, epoch)
    if where == "stage" and epoch.number == number and epoch.sink == "two": die()
    return result
def committed(self, work, epoch):
    if where == "before-commit" and epoch.number == number and epoch.sink == "one": die()
    commit(self, work, epoch)
    if where == "between-sinks" and epoch.number == number and epoch.sink == "one": die()
def ran(self, frame, n):
    run(self, frame, n)
    if where == "before-spark" and n == number: die()
FileSink.stage, FileSink.commit, epochs.EpochLoop._run = staged, committed, ran
sys.argv = ["millstream", "run", "p.yaml"]
from millstream.cli import main
main()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    for number in range(4):
        path = tmp_path / f"in/{number}.json"
        path.write_text("".join(json.dumps({"id": number * 100 + i}) + "\n" for i in range(50)))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return tmp_path


def killed(where: str, epoch: int = 2) -> bool:
    command = [sys.executable, "-c", SABOTAGE, where, str(epoch)]
    return subprocess.run(command, capture_output=True, timeout=400, check=False).returncode == -signal.SIGKILL


def repeated(sink: str) -> int:
    counts = Counter(read_committed(f"out/{sink}")["id"].to_pylist())
    assert set(counts) == {number * 100 + i for number in range(4) for i in range(50)}
    return sum(count - 1 for count in counts.values())


@pytest.mark.parametrize("where", ["stage", "before-commit", "between-sinks", "before-spark"])
def test_every_row_arrives_once_wherever_it_is_killed(project: Path, run: Callable[..., Report], where: str) -> None:
    assert killed(where)
    run(load_pipeline(project / "p.yaml"))
    assert (repeated("one"), repeated("two")) == (0, 0)


def test_without_the_ledger_the_epoch_is_written_twice(project: Path, run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that is somebody else after its start: no target recognises its epochs."""
    assert killed("before-spark")
    monkeypatch.setattr(QueryCheckpoint, "query_id", lambda self: "somebody else")
    monkeypatch.setattr(Deliveries, "lacking", lambda *_: [])  # which would notice at once
    run(load_pipeline(project / "p.yaml"))
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
