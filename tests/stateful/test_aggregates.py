"""All aggregates in one pass over native types, with FILTER, equal what a batch computes."""

import statistics
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from tests.stateful.conftest import at

import millstream as ms

pytestmark = pytest.mark.spark
ROWS = [{"k": 1, "i": i, "d": Decimal(i) / 4, "x": i * 1.5, "s": "abc"[i % 3], "at": at(i if i != 4 else -1)} for i in [5, 3, 4, 9, 1, 7]]


def one(timed: Callable[..., ms.DataStream], **aggregates: Any) -> dict[str, Any]:
    table = timed("rows", ROWS).key_by("k").window(ms.TumblingWindow.of("1h", offset="30m")).aggregate(**aggregates).collect()
    assert table.num_rows == 1
    return {name: table[name][0].as_py() for name in aggregates}


def test_every_aggregate_in_one_pass(timed: Callable[..., ms.DataStream]) -> None:
    found = one(
        timed,
        n=ms.count(),
        total=ms.sum_("i"),
        exact=ms.sum_("d"),
        mean=ms.avg("x"),
        low=ms.min_("s"),
        high=ms.max_("at"),
        first=ms.first("i"),
        last=ms.last("i"),
        kinds=ms.count_distinct("s"),
        about=ms.approx_count_distinct("s"),
        middle=ms.median("i"),
        p90=ms.percentile("i", 0.9),
        spread=ms.stddev("x"),
        variance=ms.variance("x"),
        all=ms.collect("i"),
        sorts=ms.collect_set("s"),
        top=ms.top_k("i", 2),
        best=ms.top_k("s", 2, by="i"),
        odd=ms.sum_("i", where="i % 2 = 1"),
        odd_kinds=ms.count_distinct("s", where=ms.col("i") > 4),
    )
    values = [row["i"] for row in ROWS]
    assert found["n"] == 6 and found["total"] == sum(values) and found["exact"] == Decimal(sum(values)) / 4
    assert found["mean"] == pytest.approx(1.5 * statistics.mean(values)) and found["low"] == "a" and found["high"] == at(9)
    assert (found["first"], found["last"]) == (4, 9), "by event time, not by arrival"
    assert found["kinds"] == found["about"] == 3 and found["middle"] == statistics.median(values)
    assert found["p90"] == pytest.approx(8.0) and found["spread"] == pytest.approx(statistics.stdev(v * 1.5 for v in values))
    assert found["variance"] == pytest.approx(statistics.variance(v * 1.5 for v in values))
    assert sorted(found["all"]) == sorted(values) and sorted(found["sorts"]) == ["a", "b", "c"]
    assert found["top"] == [9, 7] and found["best"] == ["a", "b"]
    assert found["odd"] == 25 and found["odd_kinds"] == 3


def test_running_totals_are_a_changelog_by_key(timed: Callable[..., ms.DataStream]) -> None:
    rows = [{"k": k, "v": v, "at": at(v)} for k, v in [(1, 1), (2, 2), (1, 3), (1, 4), (2, 5)]]
    table = timed("rows", rows, size=2).key_by("k").aggregate(total=ms.sum_("v"), n=ms.count()).collect()
    assert table["_op"].to_pylist() == ["u"] * table.num_rows
    last = {row["k"]: (row["total"], row["n"]) for row in table.to_pylist()}
    assert table.num_rows == 4 and last == {1: (8, 3), 2: (7, 2)}


def test_early_results_are_corrected_and_end_where_closed_ones_are(timed: Callable[..., ms.DataStream]) -> None:
    rows = [{"k": 1, "v": v, "at": at(seconds)} for v, seconds in [(1, 1), (2, 61), (3, 2), (4, 62)]]
    windowed = timed("rows", rows, size=2).key_by("k").window(ms.TumblingWindow.of("1m"))
    early = windowed.aggregate(total=ms.sum_("v"), emit="updates").collect().to_pylist()
    closed = windowed.aggregate(total=ms.sum_("v")).collect().to_pylist()
    assert len(early) == 4 and len(closed) == 2 and all(row["_op"] == "u" for row in early)
    assert {row["window_start"]: row["total"] for row in early} == {row["window_start"]: row["total"] for row in closed}
