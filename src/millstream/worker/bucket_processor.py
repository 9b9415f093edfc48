"""Processes one bucket: Spark passes its packed rows and its one state value, gets rows back, and sets one timer for the next call.

Spark calls this class like a `StatefulProcessor`. A small second value holds the bucket's next deadlines, so that a call with nothing due
does not read the state. Spark has one kind of time per operator: in event time it calls a bucket when the watermark reaches its timer; in
processing time it uses the epoch's clock, and buckets that wait for the watermark are checked in every epoch. This module is pickled to the
workers (`pickling.py`), so it imports only modules of Millstream that are pickled too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa

from millstream.worker import marks
from millstream.worker.batches import WrongResultError
from millstream.worker.buckets import from_bytes, in_order, to_bytes
from millstream.worker.limits import TimedOutError, time_limit
from millstream.worker.masking import mask
from millstream.worker.processing import Moment
from millstream.worker.state_layout import StateLayoutError

TimeMode = Literal["None", "EventTime", "ProcessingTime"]
STATE, ALARM, ABOUT = "state", "alarm", "millstream"


class BadKeyError(ValueError):
    """A row whose key is null."""


class BucketProcessor:
    """The object that Spark calls, with the runner of the function."""

    def __init__(
        self, runner: Any, node: str, directory: str, mode: TimeMode, event_time: bool, timeout_ms: int | None, needed: tuple[str, ...]
    ) -> None:
        self._runner, self._node, self._directory = runner, node, directory
        self._mode, self._event_time, self._timeout_ms, self._needed = mode, event_time, timeout_ms, needed

    def init(self, handle: Any) -> None:
        if self._directory not in sys.path:  # for modules that the function imports while it runs
            sys.path.insert(0, self._directory)
        self._handle = handle
        self._state = handle.getValueState(STATE, "rows binary")
        self._alarm = handle.getValueState(ALARM, "event long, clock long, armed long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 — Spark's names
        with self._annotate_failure():
            table, now = in_order(rows)
            if key[0] < 0:
                return iter(self._without_key(table))
            return iter(self._visit(table, self._moment(timerValues, now)))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803 — Spark's names
        moment = self._moment(timerValues, 0)
        with self._annotate_failure():
            event, clock, _ = self._alarm.get() or (None, None, None)
            if event is None and clock is None:
                return iter(())
            if (event is not None and event <= (moment.watermark_us or 0)) or (clock is not None and clock <= moment.now_us):
                return iter(self._visit(None, moment, expiredTimerInfo.getExpiryTimeInMs()))
            self._set_alarm(event, clock, moment, expiredTimerInfo.getExpiryTimeInMs())
            return iter(())

    def close(self) -> None:
        """Spark requires it."""

    def _visit(self, rows: pa.Table | None, moment: Moment, expired: int = -1) -> list[Any]:
        stored = self._state.get()
        before = from_bytes(stored[0]) if stored else None
        with time_limit(self._timeout_ms):
            visit = self._runner.visit(rows, before, moment)
        if visit.state.num_rows:
            if before is None or not visit.state.equals(before):
                self._state.update((to_bytes(visit.state.replace_schema_metadata({ABOUT: self._about()})),))
        elif stored:
            self._state.clear()
        self._set_alarm(visit.event, visit.clock, moment, expired)
        return _pack(visit.batches)

    def _about(self) -> str:
        """The description that a reader of the state needs without the class."""
        return json.dumps({"node": self._node, "keys": list(self._runner.keys), "kinds": self._runner.kinds})

    def _set_alarm(self, event: int | None, clock: int | None, moment: Moment, expired: int) -> None:
        """Set one Spark timer, at the earliest deadline. Spark deletes the expired one after the call: it cannot be set again."""
        held = self._alarm.get()
        armed, wanted = held[2] if held else None, self._next_deadline(event, clock, moment)
        if wanted is not None and wanted <= expired:
            wanted = expired + 1
        if held == (event, clock, wanted) or (held is None and wanted is None):
            return
        if armed != wanted:
            if armed not in (None, expired):
                self._handle.deleteTimer(armed)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        if wanted is None:
            self._alarm.clear()
        else:
            self._alarm.update((event, clock, wanted))

    def _next_deadline(self, event: int | None, clock: int | None, moment: Moment) -> int | None:
        """The next deadline, in milliseconds of the operator's kind of time."""
        if self._mode == "EventTime":
            return None if event is None else -(-event // 1000)
        times = [] if clock is None else [-(-clock // 1000)]
        if event is not None:
            times.append(moment.now_us // 1000 + 1)
        return min(times, default=None)

    def _moment(self, values: Any, now: int) -> Moment:
        if self._mode == "None":
            return Moment(None, now)
        watermark = max(0, values.getCurrentWatermarkInMs()) * 1000 if self._event_time else None
        return Moment(watermark, values.getCurrentProcessingTimeInMs() * 1000)

    def _without_key(self, table: pa.Table) -> list[Any]:
        shape, error = self._runner.shape, f"{' or '.join(f'`{name}`' for name in self._needed)} is null"
        if not shape.isolate:
            raise BadKeyError(f"{marks.refusal('MS073', self._node, 'key_by')}{error} in a row: {table.slice(0, 1).to_pylist()[0]}")
        return _pack(shape.rejects(table.to_pylist(), error))

    @contextmanager
    def _annotate_failure(self) -> Iterator[None]:
        """Add notes to a failure that name its node, for the engine."""
        try:
            yield
        except (Exception, TimedOutError) as error:
            told = mask(error, self._runner.shape.hidden)
            told.add_note(marks.write(marks.NODE, self._node))
            for kind, mark in _MARKS.items():
                if isinstance(error, kind):
                    told.add_note(marks.write(mark, str(error)))
            if told is not error:
                raise told from None
            raise


_MARKS: dict[type[BaseException], str] = {
    WrongResultError: marks.WRONG_SCHEMA,
    StateLayoutError: marks.STATE,
    TimedOutError: marks.TIMEOUT,
}


def _pack(batches: list[pa.RecordBatch]) -> list[Any]:
    from pyspark.sql import Row

    return [Row(rows=to_bytes(pa.Table.from_batches(batches)))] if batches else []
