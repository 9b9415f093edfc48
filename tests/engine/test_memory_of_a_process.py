"""A process that runs many pipelines: what a query held goes with it, on Python's side and on Spark's."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from py4j.java_gateway import JavaObject

from millstream.engine.run.callback import EpochCallback
from millstream.engine.run.query import RunningQuery
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = "sources: {{m: {{type: memory, rows: [{{id: {n}}}]}}}}\nsinks: {{out: {{type: memory, from: m}}}}"


def callbacks() -> list[EpochCallback]:
    return [thing for thing in gc.get_objects() if isinstance(thing, EpochCallback)]


def held(spark: SparkSession, others: list[EpochCallback]) -> int:
    """Queries, beside the others, that somebody still knows. Both sides look for rubbish, as often as it takes, or twenty times."""
    for _ in range(20):
        spark._jvm.System.gc()
        gc.collect()
        found = sum(all(thing is not other for other in others) for thing in callbacks())
        if found <= 1:
            break
        time.sleep(0.1)  # the JVM tells Python of what it has freed, in a thread of its own
    return found


def runs(pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    for n in range(4):
        run(pipeline(TEXT.format(n=n), f"p{n}"))


def test_queries_that_have_ended_are_let_go(spark: SparkSession, pipeline: Callable[..., Topology], run: Callable[..., Report]) -> None:
    others = callbacks()  # of other tests; they are kept, so that none of them goes meanwhile
    runs(pipeline, run)
    assert held(spark, others) <= 1


def test_they_would_not_be_by_themselves(
    spark: SparkSession, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunningQuery, "_release", lambda self: None)
    others = callbacks()
    runs(pipeline, run)
    assert held(spark, others) > 1


def test_what_a_run_held_in_a_session_that_goes_on_is_let_go_at_its_end(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> int:
        before = java_objects()
        run(pipeline(TEXT.format(n=0)), reset=("m",))
        return java_objects() - before

    monkeypatch.setattr("millstream.jvm.session._EVERY", 1)
    gc.disable()
    try:
        run(pipeline(TEXT.format(n=0)))
        assert kept() < 10
        monkeypatch.setattr(gc, "collect", lambda: 0)
        assert kept() > 20
    finally:
        gc.enable()


def java_objects() -> int:
    return sum(isinstance(thing, JavaObject) for thing in gc.get_objects())
