"""Timers: when they fire, in which order, and what they may do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from tests.transforms.streams import Bucket, main_rows

from millstream import ProcessFunction, ValueState
from millstream.worker.processing import Moment, TimerError, as_micros

T0 = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(9500, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC"))])


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def row(user: str, minute: float) -> dict[str, Any]:
    return {"user": user, "at": at(minute)}


class Reminds(ProcessFunction):
    """A timer ten minutes after each row."""

    output = {"what": "string"}
    state = {"rows": ValueState("int64")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        state["rows"].set(state["rows"].get(0) + rows.num_rows)
        for time in rows["at"].to_pylist():
            timers.at(time + timedelta(minutes=10))
        yield {"what": f"{key} rows"}

    def on_timer(self, key: Any, time: datetime, state: Any, timers: Any) -> Any:
        yield {"what": f"{key} timer {(time - T0) // timedelta(minutes=1)} after {state['rows'].get()}"}


def whats(rows: list[dict[str, Any]]) -> list[str]:
    return [row["what"] for row in main_rows(rows)]


def test_a_timer_fires_once_the_watermark_has_reached_it_and_not_before() -> None:
    bucket = Bucket(Reminds, SCHEMA)
    bucket.epoch([row("a", 0), row("b", 3)])
    assert bucket.event == as_micros(at(10))
    assert whats(bucket.epoch([], at(9.99))) == []
    assert whats(bucket.epoch([], at(10))) == ["a timer 10 after 1"]
    assert whats(bucket.epoch([], at(60))) == ["b timer 13 after 1"]
    assert bucket.event is None


def test_timers_fire_before_the_rows_of_the_epoch_and_in_the_order_of_time() -> None:
    bucket = Bucket(Reminds, SCHEMA)
    bucket.epoch([row("a", 5), row("a", 1), row("a", 3)])
    assert whats(bucket.epoch([row("a", 30)], at(20))) == ["a timer 11 after 3", "a timer 13 after 3", "a timer 15 after 3", "a rows"]


def test_a_late_row_reaches_the_function_and_its_timer_fires_at_once() -> None:
    bucket = Bucket(Reminds, SCHEMA)
    assert whats(bucket.epoch([row("a", 0)], at(60))) == ["a rows", "a timer 10 after 1"]


def test_at_the_end_of_the_input_every_timer_fires() -> None:
    bucket = Bucket(Reminds, SCHEMA)
    bucket.epoch([row("a", 0), row("b", 10_000_000)])
    assert whats(bucket.epoch([], END)) == ["a timer 10 after 1", "b timer 10000010 after 1"]


class Repeats(ProcessFunction):
    output = {"what": "string"}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        timers.at(rows["at"][0].as_py())
        timers.at(rows["at"][0].as_py())
        timers.at(at(3))
        timers.cancel(at(3))

    def on_timer(self, key: Any, time: datetime, state: Any, timers: Any) -> Any:
        if key == "forever" or not timers.at_end:
            timers.at(time + timedelta(minutes=1))
        yield {"what": f"{(time - T0) // timedelta(minutes=1)} {timers.at_end}"}


def test_timers_that_timers_set_fire_too_and_twice_is_once() -> None:
    bucket = Bucket(Repeats, SCHEMA)
    assert whats(bucket.epoch([row("a", 0)], at(2.5))) == ["0 False", "1 False", "2 False"]
    assert whats(bucket.epoch([], END)) == ["3 True"]


def test_timers_without_end_are_stopped() -> None:
    bucket = Bucket(Repeats, SCHEMA)
    bucket.epoch([row("forever", 0)])
    with pytest.raises(TimerError, match="at_end"):
        bucket.epoch([], END)


class Ticks(ProcessFunction):
    output = {"what": "string"}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        timers.at_clock(timers.now + timedelta(seconds=5))
        timers.at_clock(timers.now + timedelta(seconds=7))
        timers.cancel_clock(timers.now + timedelta(seconds=7))
        timers.at(rows["at"][0].as_py())

    def on_timer(self, key: Any, time: datetime, state: Any, timers: Any) -> Any:
        yield {"what": "event"}

    def on_clock(self, key: Any, time: datetime, state: Any, timers: Any) -> Any:
        yield {"what": f"clock {time:%S}"}


def test_the_clock_s_timers_are_told_from_those_of_event_time() -> None:
    bucket = Bucket(Ticks, SCHEMA)
    assert whats(bucket.epoch([row("a", 60)], now=T0)) == []
    assert bucket.clock == as_micros(T0 + timedelta(seconds=5))
    assert whats(bucket.epoch([], at(61), now=T0 + timedelta(seconds=4))) == ["event"]
    assert whats(bucket.epoch([], at(61), now=T0 + timedelta(seconds=9))) == ["clock 05"]
    assert bucket.stored == []


def test_timers_that_could_never_fire_are_refused() -> None:
    class NoClock(Ticks):
        on_clock = ProcessFunction.on_clock

    with pytest.raises(TimerError, match="on_clock"):
        Bucket(NoClock, SCHEMA).epoch([row("a", 1)])
    bucket = Bucket(Reminds, SCHEMA)
    with pytest.raises(TimerError, match="event_time"):
        bucket.runner.visit(pa.Table.from_pylist([row("a", 1)], SCHEMA), None, Moment(None, as_micros(T0)))
