"""Windows in a bounded stream hold exactly what a batch would put into them, the last one included."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.stateful.conftest import START, at

from millstream import DataStream, SessionWindow, SlidingWindow, TumblingWindow, count, sum_

pytestmark = pytest.mark.spark
CLICKS = [{"user": "ab"[i % 2], "amount": i, "at": at(seconds)} for i, seconds in enumerate([3, 61, 2, 119, 130, 5, 400, 401, 460])]


def results(stream: DataStream) -> dict[Any, tuple[int, int]]:
    rows = stream.collect().to_pylist()
    found = {(row.get("user"), row["window_start"], row["window_end"]): (row["total"], row["n"]) for row in rows}
    assert len(found) == len(rows), "a window came out twice"
    return found


def expected(starts: Callable[[datetime], list[tuple[datetime, datetime]]], keyed: bool = True) -> dict[Any, tuple[int, int]]:
    sums: dict[Any, list[int]] = defaultdict(list)
    for click in CLICKS:
        for window in starts(click["at"]):
            sums[(click["user"] if keyed else None, *window)].append(click["amount"])
    return {key: (sum(values), len(values)) for key, values in sums.items()}


def sized(size: int, slide: int, offset: int = 0) -> Callable[[datetime], list[tuple[datetime, datetime]]]:
    def windows(time: datetime) -> list[tuple[datetime, datetime]]:
        seconds = int((time - START).total_seconds()) - offset
        first = seconds // slide * slide
        starts = [start for start in range(first, first - size, -slide) if start <= seconds < start + size]
        return [(at(start + offset), at(start + offset + size)) for start in starts]

    return windows


def test_tumbling_windows(timed: Callable[..., DataStream]) -> None:
    windowed = timed("clicks", CLICKS).key_by("user").window(TumblingWindow.of("1m"))
    assert results(windowed.aggregate(total=sum_("amount"), n=count())) == expected(sized(60, 60))


def test_an_offset_moves_the_windows_and_all_rows_can_be_one_group(timed: Callable[..., DataStream]) -> None:
    windowed = timed("clicks", CLICKS).key_by().window(TumblingWindow.of("1m", offset="20s"))
    assert results(windowed.aggregate(total=sum_("amount"), n=count())) == expected(sized(60, 60, 20), keyed=False)


def test_sliding_windows_overlap(timed: Callable[..., DataStream]) -> None:
    windowed = timed("clicks", CLICKS).key_by("user").window(SlidingWindow.of("1m", "20s"))
    assert results(windowed.aggregate(total=sum_("amount"), n=count())) == expected(sized(60, 20))


@pytest.mark.parametrize("keys", [("user",), ()])
def test_sessions_end_with_a_gap(timed: Callable[..., DataStream], keys: tuple[str, ...]) -> None:
    windowed = timed("clicks", CLICKS).key_by(*keys).window(SessionWindow.with_gap("1m"))
    assert results(windowed.aggregate(total=sum_("amount"), n=count())) == sessions(keyed=bool(keys))


def test_the_gap_can_depend_on_the_row(timed: Callable[..., DataStream]) -> None:
    windowed = (
        timed("clicks", CLICKS).key_by("user").window(SessionWindow.with_gap("CASE WHEN user = 'a' THEN '1 minute' ELSE '5 seconds' END"))
    )
    found = results(windowed.aggregate(total=sum_("amount"), n=count()))
    wide, narrow = sessions(keyed=True), sessions(keyed=True, gap=5)
    assert found == {k: v for k, v in wide.items() if k[0] == "a"} | {k: v for k, v in narrow.items() if k[0] == "b"}


def sessions(keyed: bool, gap: int = 60) -> dict[Any, tuple[int, int]]:
    found: dict[Any, tuple[int, int]] = {}
    for user in ["a", "b"] if keyed else [None]:
        clicks = sorted((c for c in CLICKS if user in (None, c["user"])), key=lambda c: c["at"])
        groups: list[list[dict[str, Any]]] = []
        for click in clicks:
            if groups and click["at"] - groups[-1][-1]["at"] <= timedelta(seconds=gap):
                groups[-1].append(click)
            else:
                groups.append([click])
        for group in groups:
            key = (user, group[0]["at"], group[-1]["at"] + timedelta(seconds=gap))
            found[key] = (sum(c["amount"] for c in group), len(group))
    return found


def test_days_follow_the_calendar_of_a_time_zone(timed: Callable[..., DataStream]) -> None:
    """On 2024-03-31 Berlin's day has 23 hours, on 2024-10-27 it has 25."""
    times = [datetime(2024, 3, 30, 22, 30, tzinfo=UTC) + timedelta(hours=h) for h in range(0, 49, 4)]
    times += [datetime(2024, 10, 26, 20, 30, tzinfo=UTC) + timedelta(hours=h) for h in range(0, 49, 4)]
    days = timed("t", [{"amount": 1, "at": time} for time in times], size=7)
    found = results(days.key_by().window(TumblingWindow.of("1d", time_zone="Europe/Berlin")).aggregate(total=sum_("amount"), n=count()))
    lengths = {(end - start).total_seconds() / 3600 for _, start, end in found}
    assert lengths == {23.0, 24.0, 25.0}
    assert (None, datetime(2024, 3, 30, 23, tzinfo=UTC), datetime(2024, 3, 31, 22, tzinfo=UTC)) in found
    assert sum(n for _, n in found.values()) == len(times)


def test_weeks_start_on_monday_and_can_slide_by_days(timed: Callable[..., DataStream]) -> None:
    days = timed(
        "t", [{"amount": 1, "at": datetime(2024, 3, 31, 12, tzinfo=UTC)}, {"amount": 1, "at": datetime(2024, 4, 1, 12, tzinfo=UTC)}]
    )
    weeks = days.key_by().window(TumblingWindow.of("7d", time_zone="Europe/Berlin")).aggregate(total=sum_("amount"), n=count())
    assert sorted(start for _, start, _ in results(weeks)) == [datetime(2024, 3, 24, 23, tzinfo=UTC), datetime(2024, 3, 31, 22, tzinfo=UTC)]
    slid = days.key_by().window(SlidingWindow.of("7d", "1d", time_zone="Europe/Berlin")).aggregate(total=sum_("amount"), n=count())
    assert sum(n for _, n in results(slid).values()) == 14


def test_a_window_over_a_window_adds_its_results_up(timed: Callable[..., DataStream]) -> None:
    minutes = timed("clicks", CLICKS).key_by("user").window(TumblingWindow.of("1m")).aggregate(total=sum_("amount"), n=count())
    minutes.with_event_time("window_start")
    fives = minutes.key_by("user").window(TumblingWindow.of("5m")).aggregate(total=sum_("total"), n=sum_("n"))
    assert results(fives) == expected(sized(300, 300))
