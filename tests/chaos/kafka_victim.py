"""A pipeline in a process of its own, that dies where it is told: `kafka_victim.py PIPELINE DEATHS VARIANT`.

A file in DEATHS is an order to die at the point that it is named after; the process that removes it dies. `variant` takes away one part of
the protocol, for the controls: what it protects from must then be seen to happen.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[2]))

from pyspark import cloudpickle
from tests.chaos import arena
from tests.chaos.arena import chance_of_start, ordered

from millstream.connectors.kafka import sink
from millstream.connectors.kafka.worker import lanes
from millstream.connectors.kafka.write import delivery, lane_fencing
from millstream.connectors.kafka.write.epoch_log import EpochLog
from millstream.engine.engine import SparkEngine
from millstream.plan.run_options import RunOptions
from millstream.spec.files import load_pipeline
from millstream.sql.catalyst.small_rows import SmallRows


def mortal(deaths: str, driver: int) -> Callable[[str, int], None]:
    def passing(point: str, lane: int) -> None:
        on_driver = os.getpid() == driver  # a small epoch
        if ordered(deaths, f"small-{point}" if on_driver else f"driver-{point}"):
            os.kill(driver, signal.SIGKILL)
        if not on_driver and ordered(deaths, f"worker-{point}"):
            os._exit(9)

    return passing


def dying_after_commit(deaths: str) -> Callable[..., None]:
    commit = sink.KafkaSinkRun.commit

    def wrapped(self: Any, staged: Any, epoch: Any) -> None:
        commit(self, staged, epoch)
        if ordered(deaths, "driver-between"):
            os.kill(os.getpid(), signal.SIGKILL)

    return wrapped


def random_lanes(messages: Any, count: int) -> Any:
    from pyspark.sql import functions as F

    return messages.select((F.rand() * count).cast("int").alias("lane"), F.monotonically_increasing_id().alias("place"), "*")


def forgetting_the_plan(stage: Any) -> Any:
    """Every attempt computes its rows anew, and does not compare them with those of the last one."""

    def staged(self: Any, frame: Any, lanes: int) -> Any:
        with patch.object(EpochLog, "plan", lambda *_: None):
            return stage(self, frame, lanes)

    return staged


def no_marker(job: Any, lane: int, held: Any) -> None:
    """Write, whatever the marker says."""


def either_way() -> Callable[[SmallRows], bool]:
    """Small epochs, of which about every second attempt is made as if it were large."""
    chance = chance_of_start()
    return lambda _: chance.random() < 0.5


def main(pipeline: str, deaths: str, variant: str) -> None:
    os.chdir(Path(pipeline).parent)
    cloudpickle.register_pickle_by_value(arena)  # the workers do not have the tests
    lanes.reach_point = mortal(deaths, os.getpid())  # type: ignore[assignment]  # that is the test
    sink.KafkaSinkRun.commit = dying_after_commit(deaths)  # type: ignore[method-assign]  # that is the test
    if "no_marker" in variant:
        lanes.check_own_marker = lane_fencing.check_marker = no_marker
    if variant == "either_way":
        SmallRows.is_tried = either_way()  # type: ignore[method-assign]  # that is the test
    if "large" in variant:
        SmallRows.collect = lambda self, frame: None  # type: ignore[method-assign]  # that is the test
    if "random_lanes" in variant:
        delivery.in_lanes = random_lanes  # type: ignore[assignment]  # that is the control
        delivery.Delivery.stage = forgetting_the_plan(delivery.Delivery.stage)  # type: ignore[method-assign]  # and so is this
    SparkEngine().run(load_pipeline(Path(pipeline)), RunOptions())


if __name__ == "__main__":
    main(*sys.argv[1:])
