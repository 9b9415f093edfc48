"""`plugin_victim.py STEP EPOCH [VARIANT]` runs `p.yaml` and kills the process at a step of an epoch of the plugin's sink.

The variant `no_ledger` has the sink forget at every start which epoch it holds.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from millstream.checkpoint.deliveries import Deliveries
from millstream.engine.engine import SparkEngine
from millstream.engine.epoch.loop import EpochLoop
from millstream.plan.components.arrow_sink import ArrowSinkRun, LedgerSinkRun
from millstream.plan.run_options import RunOptions
from millstream.spec.files import load_pipeline

STEPS = ("staged", "committed", "before-spark")


def main(step: str, number: str, variant: str = "") -> None:
    stage, commit, run = ArrowSinkRun.stage, ArrowSinkRun.commit, EpochLoop._run

    def die(where: str, epoch: int) -> None:
        if where == step and epoch == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

    def staged(self: Any, frame: Any, epoch: Any) -> Any:
        result = stage(self, frame, epoch)
        die("staged", epoch.number)
        return result

    def committed(self: Any, work: Any, epoch: Any) -> None:
        commit(self, work, epoch)
        die("committed", epoch.number)

    def ran(self: Any, frame: Any, epoch: int) -> None:
        run(self, frame, epoch)
        die("before-spark", epoch)

    ArrowSinkRun.stage, ArrowSinkRun.commit, EpochLoop._run = staged, committed, ran  # type: ignore[method-assign]  # that is the test
    if variant == "no_ledger":
        LedgerSinkRun.ledger = lambda *_: None  # type: ignore[method-assign]  # that is the control
        LedgerSinkRun.commit = committed  # type: ignore[method-assign]  # without the look at the ledger
        Deliveries.find_lacks = lambda *_: []  # type: ignore[method-assign]  # which would notice at once
    SparkEngine().run(load_pipeline("p.yaml"), RunOptions())


if __name__ == "__main__":
    main(*sys.argv[1:])
