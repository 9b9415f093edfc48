"""Spark's jobs, read from its status store when the run is over: nothing is called while epochs run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

KEPT = {"spark.ui.retainedJobs": "1000000", "spark.ui.retainedStages": "1000000", "spark.sql.ui.retainedExecutions": "100000"}
"""Settings with which the status store still has all of them then."""
_PYTHON = {"time to start Python workers": "Python worker start", "time to run Python workers": "Python worker run"}
"""Spark's time to initialise a worker is left out: for a worker that is used again it contains the wait for its next task."""
_UNITS = {"ms": 1.0, "s": 1000.0, "m": 60_000.0, "min": 60_000.0, "h": 3_600_000.0}


@dataclass(frozen=True, slots=True)
class Job:
    """One job; seconds of the wall clock, to the millisecond."""

    group: str
    start: float
    end: float
    stages: int
    tasks: int


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """Milliseconds that the tasks of one execution have spent on Python workers, as Spark measures them."""

    at: float
    name: str
    ms: float


def read_jobs(spark: Any) -> list[Job]:
    """All finished jobs, in order."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    store, found = context.statusStore(), []
    for each in _items(store.jobsList(None)):
        if each.completionTime().isEmpty():
            continue
        group = each.jobGroup()
        start, end = each.submissionTime().get().getTime() / 1000, each.completionTime().get().getTime() / 1000
        stages = int(each.numCompletedStages())
        found.append(Job("" if group.isEmpty() else str(group.get()), start, end, stages, int(each.numCompletedTasks())))
    return sorted(found, key=lambda job: job.start)


def read_worker_times(spark: Any) -> list[WorkerTime]:
    """The time of Python workers, of executions that had any."""
    store, found = spark._jsparkSession.sharedState().statusStore(), []
    for each in _items(store.executionsList()):
        names = {int(metric.accumulatorId()): str(metric.name()) for metric in _items(each.metrics())}
        wanted = {key: _PYTHON[name] for key, name in names.items() if name in _PYTHON}
        values = store.executionMetrics(each.executionId()) if wanted else None
        for key, name in wanted.items():
            value = values.get(key) if values is not None else None
            if value is not None and not value.isEmpty():
                found.append(WorkerTime(int(each.submissionTime()) / 1000, name, total_ms(str(value.get()))))
    return found


def total_ms(text: str) -> float:
    """The total in the text of a metric, such as `total (min, med, max …)\\n12 ms (5 ms, …)` or `1.2 s`."""
    match = re.match(r"([\d.,]+) ([a-z]+)", text.rpartition("\n")[2])
    return float(match[1].replace(",", "")) * _UNITS.get(match[2], 1.0) if match else 0.0


def covered(start: float, end: float, jobs: Sequence[Job]) -> float:
    """Seconds of an interval in which at least one of these jobs runs; they are in order."""
    total, reached = 0.0, start
    for job in jobs:
        first, last = max(job.start, reached), min(job.end, end)
        if last > first:
            total += last - first
            reached = last
    return total


def _items(sequence: Any) -> list[Any]:
    """A Scala sequence, as a list."""
    iterator, found = sequence.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return found
