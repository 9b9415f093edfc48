"""The counters of plugins: tasks add to one accumulator of Spark, and the driver passes on what was added since the last time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from pyspark.accumulators import _accumulatorRegistry
from pyspark.sql import SparkSession

from millstream.worker.plugin_tasks import CountsParam, Metrics, TaskMetrics


class Counters:
    """The counters of one run."""

    def __init__(self, spark: SparkSession) -> None:
        param: Any = CountsParam()  # Spark's types ask for a class of its own
        self._accumulator: Any = spark.sparkContext.accumulator({}, param)
        self._taken: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def of(self, node: str) -> Metrics:
        """What a node counts with, on the driver and on workers."""
        return TaskMetrics(node, self._accumulator)

    def take(self) -> Mapping[str, Mapping[str, int]]:
        """Node → counter → what was added since the last call."""
        with self._lock:
            now = dict(self._accumulator.value)
            found: dict[str, dict[str, int]] = {}
            for (node, name), number in now.items():
                if more := number - self._taken.get((node, name), 0):
                    found.setdefault(node, {})[name] = more
            self._taken = now
        return found

    def close(self) -> None:
        _accumulatorRegistry.pop(self._accumulator.aid, None)
