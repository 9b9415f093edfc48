"""A pipeline from files to files in a process of its own, that dies where it is told: `files_victim.py PIPELINE DEATHS VARIANT`.

The variant `no_ledger` has every start be somebody else, whose epochs no target recognises.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos.arena import ordered

from millstream.checkpoint.deliveries import Deliveries
from millstream.checkpoint.layout import QueryCheckpoint
from millstream.connectors.file.sink import FileSinkRun
from millstream.engine.engine import SparkEngine
from millstream.engine.epoch.loop import EpochLoop
from millstream.plan.run_options import RunOptions
from millstream.spec.files import load_pipeline


def make_mortal(deaths: str) -> None:
    stage, commit, run = FileSinkRun.stage, FileSinkRun.commit, EpochLoop._run

    def die(point: str) -> None:
        if ordered(deaths, f"driver-{point}"):
            os.kill(os.getpid(), signal.SIGKILL)

    def staged(self: Any, frame: Any, epoch: Any) -> Any:
        result = stage(self, frame, epoch)
        die("staging")
        return result

    def committed(self: Any, work: Any, epoch: Any) -> None:
        die("staged")
        commit(self, work, epoch)
        die("between")

    def ran(self: Any, frame: Any, number: int) -> None:
        run(self, frame, number)
        die("committed")

    FileSinkRun.stage, FileSinkRun.commit, EpochLoop._run = staged, committed, ran  # type: ignore[method-assign]  # that is the test


def main(pipeline: str, deaths: str, variant: str) -> None:
    os.chdir(Path(pipeline).parent)
    make_mortal(deaths)
    if variant == "no_ledger":
        me = uuid.uuid4().hex
        QueryCheckpoint.query_id = lambda self: me  # type: ignore[method-assign]  # that is the control
        Deliveries.find_lacks = lambda *_: []  # type: ignore[method-assign]  # which would notice at once
    SparkEngine().run(load_pipeline(Path(pipeline)), RunOptions())


if __name__ == "__main__":
    main(*sys.argv[1:])
