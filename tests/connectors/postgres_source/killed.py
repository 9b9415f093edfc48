"""A pipeline in a process group of its own, killed at a chosen moment of a chosen epoch; the product itself has no such switch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SABOTAGE = """
import os, signal, sys
from pathlib import Path
from millstream.connectors.file.sink import FileSinkRun
from millstream.connectors.postgres.source import PostgresSourceRun
from millstream.engine.epoch.loop import EpochLoop
where, number = sys.argv[1], int(sys.argv[2])
stage, commit, run, committed = FileSinkRun.stage, FileSinkRun.commit, EpochLoop._run, PostgresSourceRun.on_commit
def die():
    os.killpg(os.getpgid(0), signal.SIGKILL)
def dying(self, work, epoch):
    if where == "before-commit" and epoch.number == number: die()
    commit(self, work, epoch)
def ran(self, frame, n):
    run(self, frame, n)
    if where == "before-spark" and n == number: die()
def told(self, spark, offset):
    if where == "before-telling": die()
    committed(self, spark, offset)
FileSinkRun.commit, EpochLoop._run, PostgresSourceRun.on_commit = dying, ran, told
sys.argv = ["millstream", "run", "p.yaml", "--profile", "short"]
from millstream.cli import main
main()
"""


def start(folder: Path, where: str = "nowhere", epoch: int = 0) -> int:
    """Run the pipeline in the folder; how it ended."""
    command = [sys.executable, "-c", SABOTAGE, where, str(epoch)]
    quiet = subprocess.DEVNULL
    running = subprocess.Popen(command, cwd=folder, start_new_session=True, stdout=quiet, stderr=quiet)
    return running.wait(120)
