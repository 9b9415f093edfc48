"""State in memory that is lost (an executor died), a full disk: the run goes on from what was written, or stops with nothing lost."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import applied

from millstream.clients.storage import LocalStorage
from millstream.connectors.memory.sink import MemorySink
from millstream.engine.incremental.maintenance import Maintenance
from millstream.errors import RunError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TEXT = """
    sources: {t: {type: memory, rows: [{k: a, v: 1}, {k: b, v: 2}, {k: a, v: 3}, {k: b, v: 4}], rows_per_epoch: 1}}
    transforms: {q: {type: sql, sql: "SELECT k, sum(v) AS s FROM t GROUP BY k HAVING sum(v) > 0"}}
    sinks: {out: {type: memory, from: q}}
"""
ANSWER = {("a", 4): 1, ("b", 6): 1}


def _result(topology: Topology) -> Any:
    sink = topology.node("out").component
    assert isinstance(sink, MemorySink)
    return applied([[tuple(row.values()) for row in sink.rows()]], (0,))


def _lose_rows(spark: SparkSession) -> None:
    """What the death of an executor does to the rows that it holds."""
    jvm = spark._jvm
    assert jvm is not None
    manager = jvm.org.apache.spark.SparkEnv.get().blockManager()
    for info in spark.sparkContext._jsc.sc().getRDDStorageInfo():
        manager.removeRdd(info.id())


def test_lost_rows_are_restored(
    spark: SparkSession, pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, lost = Maintenance.finish, list[int]()

    def finished(self: Maintenance, epoch: int, digest: str, watermark_ms: int) -> str:
        warning = finish(self, epoch, digest, watermark_ms)
        if epoch == 1 and not lost:
            lost.append(epoch)
            _lose_rows(spark)
        return warning

    monkeypatch.setattr(Maintenance, "finish", finished)
    topology = pipeline(TEXT)
    report = run(topology)
    assert lost and report.queries["q"].restarts == 1
    assert _result(topology) == ANSWER


def test_a_full_disk_stops_the_run_and_the_next_one_goes_on(
    pipeline: Callable[..., Topology], run: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = LocalStorage.put

    def full(self: LocalStorage, path: str, data: bytes) -> None:
        if path.startswith("log/2-"):
            raise OSError(errno.ENOSPC, "No space left on device", path)
        put(self, path, data)

    topology = pipeline(TEXT + "    settings: {restart: {limit: 0}}\n")
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "put", full)
        with pytest.raises(RunError, match=r"MS068.*disk is full"):
            run(topology)
    assert _result(topology) == {("a", 1): 1, ("b", 2): 1}
    run(topology)
    assert _result(topology) == ANSWER
