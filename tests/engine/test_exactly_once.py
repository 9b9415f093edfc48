"""Killed between a sink's commit and Spark's, the next run recognises the epoch. Without the ledger it would write it twice."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from millstream import read_committed

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
where, number, ledger = sys.argv[1], int(sys.argv[2]), sys.argv[3]
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
if ledger == "off":  # a query that is somebody else after each start: no target recognises its epochs
    import uuid
    from millstream.engine.checkpoint import QueryCheckpoint
    identity = uuid.uuid4().hex
    QueryCheckpoint.query_id = lambda self: identity
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


def start(where: str, epoch: int = 2, ledger: str = "on") -> int:
    command = [sys.executable, "-c", textwrap.dedent(SABOTAGE), where, str(epoch), ledger]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).returncode


def repeated(sink: str) -> int:
    counts = Counter(read_committed(f"out/{sink}")["id"].to_pylist())
    assert set(counts) == {number * 100 + i for number in range(4) for i in range(50)}
    return sum(count - 1 for count in counts.values())


@pytest.mark.parametrize("where", ["stage", "before-commit", "between-sinks", "before-spark"])
def test_every_row_arrives_once_wherever_it_is_killed(project: Path, where: str) -> None:
    assert start(where) == -signal.SIGKILL
    assert start("nowhere") == 0
    assert (repeated("one"), repeated("two")) == (0, 0)


def test_without_the_ledger_the_epoch_is_written_twice(project: Path) -> None:
    assert start("before-spark", ledger="off") == -signal.SIGKILL
    assert start("nowhere", ledger="off") == 0
    assert repeated("one") == 50


def test_a_checkpoint_from_another_history_is_refused(project: Path) -> None:
    assert start("nowhere") == 0
    offsets = project / ".millstream/p/queries/numbers"
    for name in ("offsets/3", "commits/3", "offsets/.3.crc", "commits/.3.crc"):
        (offsets / name).unlink(missing_ok=True)
    (project / ".millstream/p/_millstream/finished/numbers.json").unlink()
    done = subprocess.run([sys.executable, "-m", "millstream.cli", "run", "p.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "MS055" in done.stderr
    assert repeated("one") == 0
