"""A process that runs many pipelines: what a query held goes with it, on Python's side and on Spark's."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from millstream.engine.callback import EpochCallback
from millstream.engine.queries import RunningQuery
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = "sources: {{m: {{type: memory, rows: [{{id: {n}}}]}}}}\nsinks: {{out: {{type: memory, from: m}}}}"


def held(spark: SparkSession, goal: int = 0) -> int:
    """Queries that somebody still knows. Both sides look for rubbish, as often as it takes to come down to the goal, or twenty times."""
    for _ in range(20):
        spark._jvm.System.gc()
        gc.collect()
        found = sum(isinstance(thing, EpochCallback) for thing in gc.get_objects())
        if found <= goal:
            break
        time.sleep(0.1)  # the JVM tells Python of what it has freed, in a thread of its own
    return found


def runs(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    for n in range(4):
        run(pipeline(TEXT.format(n=n), f"p{n}"))


def test_queries_that_have_ended_are_let_go(spark: SparkSession, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    before = held(spark)
    runs(pipeline, run)
    assert held(spark, before + 1) <= before + 1


def test_they_would_not_be_by_themselves(
    spark: SparkSession, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunningQuery, "_let_go", lambda self: None)
    before = held(spark)
    runs(pipeline, run)
    assert held(spark, before + 1) > before + 1
