"""`python -m tests.engine.incremental.sabotage STEP EPOCH` runs `p.yaml` and kills the process at a step of an epoch.

The product itself has no such switch.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes import await_end

from millstream.checkpoint.incremental import Entry, IncrementalState
from millstream.connectors.file.sink import FileSinkRun
from millstream.connectors.postgres.sink import PostgresSinkRun
from millstream.engine.epoch.loop import EpochLoop
from millstream.engine.incremental import maintenance
from millstream.engine.incremental.maintenance import Maintenance

STEPS = ("computed", "logged", "between-sinks", "before-spark")
SNAPSHOT = "snapshot"
"""Another step: a snapshot is due after every epoch, and its rows are written."""
FIRST = "one"
"""The sink after whose commit the process dies between sinks."""


def kill(folder: Path, step: str, epoch: int) -> None:
    """Run the pipeline in a folder until it is killed."""
    home = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(home), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", __name__, step, str(epoch)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=400, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    await_end(folder)


def main(step: str, number: int) -> None:
    write, run = Maintenance.write, EpochLoop._run

    def die(where: str, epoch: int) -> None:
        if where == step and epoch == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def written(self: Maintenance, epoch: int, digest: str) -> None:
        die("computed", epoch)
        write(self, epoch, digest)
        die("logged", epoch)

    def ran(self: EpochLoop, frame: Any, epoch: int) -> None:
        run(self, frame, epoch)
        die("before-spark", epoch)

    if step == SNAPSHOT:
        maintenance._SNAPSHOT_EPOCHS = 1
        IncrementalState.put = _dying_put(lambda epoch: die(SNAPSHOT, epoch))  # type: ignore[method-assign]
    Maintenance.write, EpochLoop._run = written, ran  # type: ignore[method-assign]  # that is the sabotage
    for kind in (FileSinkRun, PostgresSinkRun):
        _die_after_commit(kind, lambda epoch: die("between-sinks", epoch))
    sys.argv = ["millstream", "run", "p.yaml", "--profile", "short"]
    from millstream.cli import main as command

    command()


def _dying_put(die: Any) -> Any:
    put = IncrementalState.put

    def counted(self: IncrementalState, entry: Entry) -> bool:
        if entry.kind == "snapshots":
            die(entry.epoch)
        return put(self, entry)

    return counted


def _die_after_commit(kind: Any, die: Any) -> None:
    commit = kind.commit

    def committed(self: Any, staged: Any, epoch: Any) -> None:
        commit(self, staged, epoch)
        if epoch.sink == FIRST:
            die(epoch.number)

    kind.commit = committed


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
