"""A bucket's visit by Spark: its packed rows and its one state value come in, rows go out, and one timer is set for the next visit.

Spark calls this class as it would a `StatefulProcessor`. A small second value holds the bucket's next deadlines, so that a visit for
which nothing is due does not read the state. Spark knows one kind of time per operator: in event time it wakes a bucket when the
watermark gets there, in processing time by the epoch's clock, and then buckets that wait for the watermark are looked at every epoch.

This module travels to the workers (`shipping.py`), so of Millstream it imports only what travels too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pyarrow as pa

from millstream.masking import mask
from millstream.plan.processing import Moment
from millstream.transforms.batches import WrongResultError
from millstream.transforms.buckets import from_bytes, in_order, to_bytes
from millstream.transforms.limits import TimedOutError, limited
from millstream.transforms.remembering import StateLayoutError

TimeMode = Literal["None", "EventTime", "ProcessingTime"]
STATE, ALARM, ABOUT = "state", "alarm", "millstream"


_KEY_MARK = "millstream-key"


class BadKeyError(ValueError):
    """A row whose key is null."""


class BucketVisits:
    """What Spark calls, with the runner that knows the function."""

    def __init__(
        self, runner: Any, node: str, directory: str, mode: TimeMode, event_time: bool, timeout_ms: int | None, needed: tuple[str, ...]
    ) -> None:
        self._runner, self._node, self._directory = runner, node, directory
        self._mode, self._event_time, self._timeout_ms, self._needed = mode, event_time, timeout_ms, needed

    def init(self, handle: Any) -> None:
        if self._directory not in sys.path:  # modules that the function imports while it runs
            sys.path.insert(0, self._directory)
        self._handle = handle
        self._state = handle.getValueState(STATE, "rows binary")
        self._alarm = handle.getValueState(ALARM, "event long, clock long, armed long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803 — Spark's names
        with self._noted():
            table, now = in_order(rows)
            if key[0] < 0:
                return iter(self._without_key(table))
            return iter(self._visit(table, self._moment(timerValues, now)))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803 — Spark's names
        moment = self._moment(timerValues, 0)
        with self._noted():
            event, clock, _ = self._alarm.get() or (None, None, None)
            if event is None and clock is None:
                return iter(())
            if (event is not None and event <= (moment.watermark_us or 0)) or (clock is not None and clock <= moment.now_us):
                return iter(self._visit(None, moment, expiredTimerInfo.getExpiryTimeInMs()))
            self._set_alarm(event, clock, moment, expiredTimerInfo.getExpiryTimeInMs())
            return iter(())

    def close(self) -> None:
        """Spark asks for it."""

    def _visit(self, rows: pa.Table | None, moment: Moment, expired: int = -1) -> list[Any]:
        stored = self._state.get()
        before = from_bytes(stored[0]) if stored else None
        with limited(self._timeout_ms):
            visit = self._runner.visit(rows, before, moment)
        if visit.state.num_rows:
            if before is None or not visit.state.equals(before):
                self._state.update((to_bytes(visit.state.replace_schema_metadata({ABOUT: self._about()})),))
        elif stored:
            self._state.clear()
        self._set_alarm(visit.event, visit.clock, moment, expired)
        return _packed(visit.batches)

    def _about(self) -> str:
        """What somebody who reads the state without the class has to know."""
        return json.dumps({"node": self._node, "keys": list(self._runner.keys), "kinds": self._runner.kinds})

    def _set_alarm(self, event: int | None, clock: int | None, moment: Moment, expired: int) -> None:
        """One timer of Spark's, at the earliest deadline. Spark deletes the expired one after the visit: it cannot be set again."""
        held = self._alarm.get()
        armed, wanted = held[2] if held else None, self._wanted(event, clock, moment)
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

    def _wanted(self, event: int | None, clock: int | None, moment: Moment) -> int | None:
        """In milliseconds of the operator's kind of time."""
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
            raise BadKeyError(f"{_KEY_MARK}: {self._node}: {error} in a row: {table.slice(0, 1).to_pylist()[0]}")
        return _packed(shape.rejects(table.to_pylist(), error))

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Whose failure it is: notes that the engine reads."""
        try:
            yield
        except (Exception, TimedOutError) as error:
            told = mask(error, self._runner.shape.hidden)
            told.add_note(f"millstream-node: {self._node}")
            for kind, mark in _MARKS.items():
                if isinstance(error, kind):
                    told.add_note(f"millstream-{mark}: {error}")
            if told is not error:
                raise told from None
            raise


_MARKS: dict[type[BaseException], str] = {
    WrongResultError: "schema",
    StateLayoutError: "state",
    TimedOutError: "timeout",
}


def _packed(batches: list[pa.RecordBatch]) -> list[Any]:
    from pyspark.sql import Row

    return [Row(rows=to_bytes(pa.Table.from_batches(batches)))] if batches else []
