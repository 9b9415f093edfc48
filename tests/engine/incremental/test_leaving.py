"""Rows that can get no more changes once the watermark has passed a time in them leave the stores; all others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.incremental.keeper import Keeper, Rows

from millstream.engine.incremental import maintenance, view
from millstream.engine.incremental.analysis import Analysis, query_over
from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.growth import growth_of
from millstream.engine.incremental.leaving.rules import leaving_rules
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.incremental.view import View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SECOND = 1_000_000
SIZES = {"x": (10, 10), "y": (30, 30), "z": (30, 10), "p": (0, 20)}
"""Windows: their length and step. Those of `p` are of any length, as sessions are."""
EPOCHS, RESTART = 5, 3
STEP = 50
"""The watermark moves by so many seconds in an epoch."""
MOST = 70
JOINED = "SELECT x.w.start a, x.w.end e, x.k, x.s, y.s n FROM x JOIN y ON x.w.start = y.w.start AND x.k = y.k"
PASSING: dict[str, tuple[str, dict[str, tuple[str, float]]]] = {
    "windows of two sizes": (JOINED, {"inner join: left": ("c0.start", 30), "inner join: right": ("c0", 10)}),
    "by the start": (
        f"SELECT a, sum(s) s, count(*) c FROM ({JOINED}) GROUP BY a",
        {"inner join of sums: left": ("c0", 30), "inner join of sums: right": ("c0", 10), "sums: sums": ("k0", 30)},
    ),
    "by the other edge": (
        f"SELECT e, max(s) s FROM ({JOINED}) GROUP BY e",
        {"inner join of sums: left": ("c0.start", 30), "inner join of sums: right": ("c0", 10), "sums: sums": ("k0", 20)},
    ),
    "sliding windows": (
        "SELECT x.w.start a, count(*) c FROM x JOIN z ON x.w.start = z.w.start AND x.k = z.k GROUP BY x.w.start",
        {"inner join of sums: left": ("c0", 30), "inner join of sums: right": ("c0", 10), "sums: sums": ("k0", 30)},
    ),
    "a whole window": (
        "SELECT x.w, concat_ws('', sort_array(collect_list(y.k))) l FROM x JOIN y ON x.w.end = y.w.end GROUP BY x.w",
        {
            "inner join: left": ("c0.end", 0),
            "inner join: right": ("c0", 0),
            "by key: input": ("c0.end", 0),
            "by key: result": ("c0.end", 0),
        },
    ),
    "a later window": (
        "SELECT x.k, x.s, y.s t FROM x JOIN y ON y.w.start = x.w.start + INTERVAL 20 SECONDS",
        {"inner join: left": ("c0", 50), "inner join: right": ("c0", -10)},
    ),
    "outer join, distinct": (
        "SELECT DISTINCT coalesce(x.w.start, y.w.start) a, y.k FROM x FULL JOIN y ON x.w.start = y.w.start AND x.k = y.k",
        {"join by key: left": ("c0", 30), "join by key: right": ("c0", 30), "sums: sums": ("k0", 30)},
    ),
    "ranks": (
        f"SELECT a, k FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY s, k) r FROM ({JOINED})) WHERE r = 1",
        {"inner join: left": ("c0", 30), "inner join: right": ("c0", 10), "top rows: input": ("c0", 30), "top rows: result": ("c0", 30)},
    ),
    "window functions": (
        "SELECT w.end, k, sum(s) OVER (PARTITION BY w.end) t FROM (SELECT w, k, s FROM x UNION ALL SELECT w, k, s FROM y)",
        {"by key: input": ("c3", 0), "by key: result": ("c3", 0)},
    ),
    "minutes": ("SELECT date_trunc('MINUTE', w.start) m, sum(s) s FROM x GROUP BY 1", {"sums: sums": ("k0", 70)}),
    "sessions by their end": (
        "SELECT p.w.end, p.s, x.k FROM p JOIN x ON p.w.end = x.w.end",
        {"inner join: left": ("c0", 0), "inner join: right": ("c0", 0)},
    ),
    "edges of two sides": (
        "SELECT x.k, y.s FROM x JOIN y ON x.w.end = y.w.start AND x.k = y.k",
        {"inner join: left": ("c0", 30), "inner join: right": ("c0", 0)},
    ),
    "EXISTS": (
        "SELECT w.start a, k FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.w.start = x.w.start AND y.k = x.k)",
        {"join by key: left": ("c0", 30), "join by key: right": ("c0", 30)},
    ),
}
RUN = ["by the start", "outer join, distinct", "a whole window"]
STAYING: dict[str, tuple[str, dict[str, tuple[str, float]]]] = {
    "a month later": (
        "SELECT x.k, y.s FROM x JOIN y ON y.w.start = x.w.start + INTERVAL 1 MONTH AND x.k = y.k",
        {},
    ),
    "another column": ("SELECT x.w.start a, y.w.start b FROM x JOIN y ON x.s = y.s AND x.k = y.k", {}),
    "starts of sessions": ("SELECT p.s, x.s t FROM p JOIN x ON p.w.start = x.w.start", {"inner join: left": ("c0", 10)}),
    "another column of a join": ("SELECT y.w.start a, count(*) c FROM x JOIN y ON x.k = y.k GROUP BY y.w.start", {}),
    "groups without the window": ("SELECT k, w.start IS NULL n, count(*) c, collect_list(s) l FROM x GROUP BY k, w.start IS NULL", {}),
}


def at(seconds: int) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def closed(name: str, watermark: int) -> Iterator[tuple[Any, ...]]:
    """The windows that close when the watermark moves on to `watermark`."""
    length, step = SIZES[name]
    for end in range(watermark - STEP + 1, watermark + 1):
        if end % step == 0:
            start = end - (length or 5 + 7 * (end // step % 20))
            yield from (((at(start), at(end)), k, end // step % 5) for k in "ab")


def feeds(spark: SparkSession) -> dict[str, Feed]:
    schema = spark.createDataFrame([], "w struct<start: timestamp, end: timestamp>, k string, s bigint").schema
    lags = {name: {"c0.end": 0} | ({"c0.start": length * SECOND} if length else {}) for name, (length, _) in SIZES.items()}
    return {name: Feed(schema, native=True, lags_us=own) for name, own in lags.items()}


def used_by(spark: SparkSession, sql: str) -> dict[str, Feed]:
    return {name: feed for name, feed in feeds(spark).items() if f" {name} " in f"{sql.replace(')', ' ')} "}


class Windows:
    """A query over closed windows, epoch by epoch."""

    def __init__(self, spark: SparkSession, sql: str, folder: Path) -> None:
        self.spark, self.sql, self.folder, self.used = spark, sql, folder, used_by(spark, sql)
        self.keeper = Keeper(spark, sql, folder, feeds=self.used)
        self.arrived: dict[str, Rows] = {name: [] for name in self.used}
        self.sizes: list[int] = []
        self.replaced = False

    def run(self, first: int, last: int) -> None:
        for epoch in range(first, last):
            watermark = STEP * (epoch + 1)
            rows = {name: list(closed(name, watermark)) for name in self.used}
            for name, own in rows.items():
                self.arrived[name] += own
            self.keeper.apply(self.keeper.step(epoch, finish=False, **rows))
            self.keeper.kept.finish(epoch, f"digest {epoch}", int(at(watermark).timestamp() * 1000))
            self.replaced |= bool(self.keeper.kept.view._compiled.whole)
            self.sizes.append(sum(self.keeper.kept._kept.values()))

    def restart(self) -> None:
        self.keeper.kept.close()
        result, self.keeper = self.keeper.result, Keeper(self.spark, self.sql, self.folder, feeds=self.used)
        self.keeper.result = result

    def check(self) -> None:
        """The result is that of all rows, and the counts are those of what is held."""
        for name, feed in self.used.items():
            self.spark.createDataFrame(self.arrived[name], feed.schema).createOrReplaceTempView(name)
        expected = Counter(tuple(row) for row in self.spark.sql(self.sql).collect())
        for name in self.used:
            self.spark.catalog.dropTempView(name)
        assert {repr(row): n for row, n in self.keeper.result.items()} == {repr(row): n for row, n in expected.items()}
        held = held_rows(self.keeper.kept, EPOCHS - 1)
        assert {name: self.keeper.kept._kept[name] for name in held} == held


def held_rows(kept: Maintenance, epoch: int) -> dict[str, int]:
    """Store → the weights of its rows."""
    found, view = {}, kept.view
    for name, fragments in view.versions[epoch].items():
        leaf = view.bridge.leaf(view.stored_rows.compiled.schemas[name], view.bridge.union_rdd(list(fragments), 2))
        found[name] = view.bridge.frame(leaf).selectExpr("coalesce(sum(_w), 0L)").collect()[0][0]
    return found


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "_FRAGMENTS", 2)


def rules(spark: SparkSession, sql: str) -> dict[str, tuple[str, float]]:
    """Operator and store → the time by which its rows leave, and its lag in seconds."""
    found = View(Analysis(spark, used_by(spark, sql), query_over(sql))).compilation
    kinds = {each.number: each.kind for each in found.operators}
    named = [(name.partition("."), rule) for name, rule in leaving_rules(found).items()]
    by_name = {f"{kinds[int(number)]}: {store}": (rule.time, rule.lag_us / SECOND) for (number, _, store), rule in named}
    assert len(by_name) == len(named), "two operators of one kind"
    return by_name


@pytest.mark.parametrize("name", PASSING)
def test_rows_leave_by_the_times_of_their_keys(name: str, spark: SparkSession) -> None:
    sql, expected = PASSING[name]
    assert rules(spark, sql) == expected


@pytest.mark.parametrize("name", STAYING)
def test_rows_without_such_a_time_stay(name: str, spark: SparkSession) -> None:
    sql, expected = STAYING[name]
    assert rules(spark, sql) == expected


def test_a_key_that_is_checked_leaves_too(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT k, w.start a FROM x"
    found = Keeper(spark, sql, tmp_path, feeds=used_by(spark, sql), key=("a",)).kept.view.leaving
    assert [(name.partition(".")[2], rule.time, rule.lag_us) for name, rule in found.items()] == [("keys", "c1", 10 * SECOND)]


@pytest.mark.parametrize("name", RUN)
def test_the_result_is_that_of_all_windows(name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart in the middle reads a snapshot, and changes after it. Stores of sums are replaced as a whole in large epochs."""
    if name == RUN[0]:
        monkeypatch.setattr(view, "_LARGE_BYTES", -1)
    monkeypatch.setattr(maintenance, "_SNAPSHOT_EPOCHS", 3)
    windows = Windows(spark, PASSING[name][0], tmp_path)
    windows.run(0, RESTART)
    if name == RUN[1]:
        windows.restart()
    windows.run(RESTART, EPOCHS)
    windows.check()
    assert windows.replaced == (name == RUN[0])
    assert max(windows.sizes) <= MOST, windows.sizes
    assert all(each.bounded_by for each in growth_of(windows.keeper.kept.view.compilation) if each.row_bytes)


def test_rows_stay_if_none_may_leave(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(View, "leaving", {})
    windows = Windows(spark, PASSING[RUN[0]][0], tmp_path)
    windows.run(0, EPOCHS)
    windows.check()
    assert max(windows.sizes) > MOST, windows.sizes
