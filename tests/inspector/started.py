"""Pipelines that run in a thread of the test, on the session that all tests share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from millstream import read_committed
from millstream.engine.engine import SparkEngine
from millstream.observe.report import Report
from millstream.plan.run_options import RunOptions
from millstream.plan.topology import Topology


class Running:
    """A pipeline in a thread of this process."""

    def __init__(self, spark: Any, topology: Topology) -> None:
        self.spark, self.options, self.report = spark, RunOptions(), list[Report | BaseException]()
        self._thread = threading.Thread(target=self._run, args=(SparkEngine(spark), topology), daemon=True)
        self._thread.start()

    def _run(self, engine: SparkEngine, topology: Topology) -> None:
        try:
            self.report.append(engine.run(topology, self.options))
        except BaseException as error:  # noqa: BLE001 — shown by `end`
            self.report.append(error)

    def end(self) -> Report:
        self._thread.join(60)
        (found,) = self.report
        assert isinstance(found, Report), found
        return found


@contextmanager
def running_pipeline(spark: Any, topology: Topology) -> Iterator[Running]:
    found = Running(spark, topology)
    try:
        yield found
    finally:
        found.options.stop.set()
        found._thread.join(60)


def rows(column: str = "id") -> list[int]:
    return sorted(read_committed("out")[column].to_pylist()) if Path("out").exists() and list(Path("out").glob("*.parquet")) else []


def wait_for(count: int, seconds: float = 60, column: str = "id") -> None:
    deadline = time.monotonic() + seconds
    while len(rows(column)) < count:
        assert time.monotonic() < deadline, "no more rows"
        time.sleep(0.1)
