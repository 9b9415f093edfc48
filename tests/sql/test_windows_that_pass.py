"""Rows of windows that can get no more changes leave the state of an incremental query: it grows with what is open and not with time."""
# ruff: noqa: E501 — the statements are read line by line

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import yaml
from tests.sql.test_windows_below import answer, normal
from tests.stateful.conftest import at

from millstream.engine.incremental import view
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.incremental.view import View
from millstream.errors import MillstreamError
from millstream.observe.report import Report
from millstream.plan.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
EPOCHS = 24
ROWS = [{"k": "ab"[number % 2], "v": number % 7, "at": at(5 * number)} for number in range(EPOCHS * 4)]
TENS = "SELECT window(at, '10 seconds') w, k, sum(v) s FROM t GROUP BY 1, 2"
THIRTIES = "SELECT window(at, '30 seconds') w, k, count(*) n FROM t GROUP BY 1, 2"
SLIDING = "SELECT window.start a, k, count(*) n FROM t GROUP BY window(at, '30 seconds', '10 seconds'), k"
JOINED = f"SELECT x.w.start a, x.k, x.s, y.n FROM ({TENS}) x JOIN ({THIRTIES}) y ON x.w.start = y.w.start AND x.k = y.k"
PASSING = {
    "windows of two sizes": JOINED,
    "an aggregate by the start": f"SELECT a, sum(s) s, count(*) c FROM ({JOINED}) GROUP BY a",
    "sliding windows": f"SELECT y.a, x.s, y.n FROM ({TENS}) x JOIN ({SLIDING}) y ON x.w.start = y.a AND x.k = y.k",
    "an outer join, distinct values": f"SELECT DISTINCT y.n, x.w.start a FROM ({TENS}) x LEFT JOIN ({THIRTIES}) y ON x.w.start = y.w.start AND x.k = y.k",
    "ranks of a join": f"SELECT a, k FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY s, k) r FROM ({JOINED})) WHERE r = 1",
}
STAYING = {
    "a join on another column": f"SELECT x.w.start a, y.w.start b FROM ({TENS}) x JOIN ({THIRTIES}) y ON x.s = y.n AND x.k = y.k",
}
MOST = 60
"""Rows of all stores: some windows of two keys, and those of the epochs since rows were dropped last."""


def document(sql: str) -> str:
    source = {"type": "memory", "rows_per_epoch": 4, "event_time": {"column": "at", "watermark": "0s"}, "rows": ROWS}
    nodes = {"q": {"type": "sql", "sql": sql, "late": "drop"}}
    return yaml.safe_dump({"name": "p", "sources": {"t": source}, "transforms": nodes, "sinks": {"out": {"type": "memory", "from": "q"}}})


def held_rows(kept: Maintenance, epoch: int) -> dict[str, int]:
    """Store → the weights of its rows."""
    found, stored = {}, kept.view.stored_rows
    for name, fragments in kept.view.versions[epoch].items():
        rows = kept.view.bridge.union_rdd(list(fragments), 2)
        frame = kept.view.bridge.frame(kept.view.bridge.leaf(stored.compiled.schemas[name], rows))
        found[name] = frame.selectExpr("coalesce(sum(_w), 0L)").first()[0]  # type: ignore[index]  # one row
    return found


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of all stores after each epoch. They are what facts say."""
    found: list[int] = []
    finish = Maintenance.finish

    def counting(self: Maintenance, epoch: int, *arguments: Any, **more: Any) -> str:
        warning = finish(self, epoch, *arguments, **more)
        found.append(sum(self._kept.values()))
        if epoch % 5 == 4:
            held = held_rows(self, epoch)
            assert {name: self._kept[name] for name in held} == held
        return warning

    monkeypatch.setattr(view, "_FRAGMENTS", 3)
    monkeypatch.setattr(Maintenance, "finish", counting)
    return found


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Maintenance]:
    found: list[Maintenance] = []
    prepare = Maintenance.prepare

    def remember(self: Maintenance, *arguments: Any) -> None:
        prepare(self, *arguments)
        found.append(self)

    monkeypatch.setattr(Maintenance, "prepare", remember)
    return found


def batch(spark: SparkSession, sql: str) -> Counter[str]:
    spark.createDataFrame(pa.Table.from_pylist(ROWS)).createOrReplaceTempView("t")
    try:
        return normal(spark.sql(sql).toArrow().to_pylist())
    finally:
        spark.catalog.dropTempView("t")


Check = Callable[[str], list[int]]


@pytest.fixture
def check(
    pipeline: Callable[..., Topology], run: Callable[..., Report], spark: SparkSession, sizes: list[int], kept: list[Maintenance]
) -> Check:
    """Runs a query, compares its result with the batch answer, and returns the rows that it kept while windows passed."""

    def go(sql: str) -> list[int]:
        topology = pipeline(document(sql))
        run(topology)
        assert len(sizes) > EPOCHS
        assert normal(answer(topology, kept[-1].key)) == batch(spark, sql)
        return sizes[:EPOCHS]

    return go


@pytest.mark.parametrize("name", PASSING)
def test_windows_leave_when_the_watermark_has_passed_them(name: str, check: Check) -> None:
    found = check(PASSING[name])
    assert max(found) <= MOST, found


@pytest.mark.parametrize("name", STAYING)
def test_rows_that_may_change_stay(name: str, check: Check) -> None:
    found = check(STAYING[name])
    assert found[-1] > MOST and found == sorted(found), found


def test_without_dropping_the_state_grows(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(View, "passing", {})
    found = check(JOINED)
    assert found[-1] > MOST and found == sorted(found), found


def test_a_restart_goes_on_with_what_is_left(
    pipeline: Callable[..., Topology],
    run: Callable[..., Report],
    spark: SparkSession,
    sizes: list[int],
    kept: list[Maintenance],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run ends after an epoch was written, and a snapshot has left out what had passed."""
    from millstream.engine.incremental import maintenance

    finish = Maintenance.finish

    def failing(self: Maintenance, epoch: int, *arguments: Any, **more: Any) -> str:
        if epoch == EPOCHS // 2:
            raise RuntimeError("the end")
        return finish(self, epoch, *arguments, **more)

    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 5)
    sql = PASSING["an aggregate by the start"]
    topology = pipeline(document(sql))
    with monkeypatch.context() as patched:
        patched.setattr(Maintenance, "finish", failing)
        with pytest.raises(MillstreamError):
            run(topology)
    run(topology)
    assert len(kept) == 2 and max(sizes[:EPOCHS]) <= MOST, sizes
    assert normal(answer(topology, kept[-1].key)) == batch(spark, sql)
