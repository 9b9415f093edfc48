"""Process functions: classes of the user's that process a key's rows, keep state, and set timers.

    class Detector(ProcessFunction):
        output = {"user": "string", "total": "int64"}
        outputs = {"alerts": {"user": "string"}}
        state = {"total": ValueState("int64", ttl="1d")}

        def process(self, key, rows, state, timers):
            total = state["total"].get(0) + rows.num_rows
            state["total"].set(total)
            if total > 100:
                yield "alerts", {"user": key}
            yield {"user": key, "total": total}

This module is pickled to Python's workers (`pickling.py`), so it imports nothing of Millstream but `states`, which is pickled too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pyarrow as pa

from millstream.worker.state_cells import KeyState
from millstream.worker.states import State

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
END = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""A watermark beyond this means that the input has ended."""


class TimerError(ValueError):
    """A timer that can never fire, or that never stops firing."""


@dataclass(frozen=True)
class Moment:
    """The times of one epoch, in microseconds; `watermark` is None without event time and 0 until it is known."""

    watermark_us: int | None
    now_us: int

    @property
    def watermark(self) -> datetime | None:
        """Rows before it are late, and timers up to it have fired. None in the first epoch, or without event time."""
        return as_datetime(self.watermark_us) if self.watermark_us else None

    @property
    def now(self) -> datetime:
        """The epoch's clock time; it is the same when the epoch is repeated."""
        return as_datetime(self.now_us)

    @property
    def at_end(self) -> bool:
        """Whether the input has ended, so that every timer fires."""
        return self.watermark_us is not None and self.watermark_us > END


class Timers:
    """The timers of one key. Setting a timer twice for the same time sets it once."""

    __slots__ = ("clock", "event", "moment", "ticks")

    def __init__(self, moment: Moment, event: set[int], clock: set[int], ticks: bool) -> None:
        self.moment, self.event, self.clock, self.ticks = moment, event, clock, ticks

    @property
    def watermark(self) -> datetime | None:
        return self.moment.watermark

    @property
    def now(self) -> datetime:
        return self.moment.now

    @property
    def at_end(self) -> bool:
        return self.moment.at_end

    def at(self, time: datetime) -> None:
        """Call `on_timer` once the watermark has reached the time."""
        if self.moment.watermark_us is None:
            raise TimerError("`timers.at` needs event time, and no node above declares `event_time`")
        self.event.add(as_micros(time))

    def at_clock(self, time: datetime) -> None:
        """Call `on_clock` in the first epoch that starts at that time or later."""
        if not self.ticks:
            raise TimerError("`timers.at_clock` needs a method `on_clock` to call")
        self.clock.add(as_micros(time))

    def cancel(self, time: datetime) -> None:
        self.event.discard(as_micros(time))

    def cancel_clock(self, time: datetime) -> None:
        self.clock.discard(as_micros(time))


class ProcessFunction:
    """Called once per key and epoch. Yields or returns dicts, RecordBatches, or `("side", row)` for a side output."""

    output: ClassVar[Mapping[str, str]] = {}
    """Column → type of the rows that come out."""
    outputs: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Name → columns of side outputs."""
    state: ClassVar[Mapping[str, State]] = {}
    """Name → `ValueState`, `ListState` or `MapState`."""

    def process(self, key: Any, rows: pa.RecordBatch, state: KeyState, timers: Timers) -> Any:
        """The key's rows of this epoch, in the order of event time. `key` is a tuple when there are several key columns."""
        raise NotImplementedError

    def on_timer(self, key: Any, time: datetime, state: KeyState, timers: Timers) -> Any:
        """Called when the watermark has reached a time set with `timers.at`."""
        return ()

    def on_clock(self, key: Any, time: datetime, state: KeyState, timers: Timers) -> Any:
        """Called when the clock has reached a time set with `timers.at_clock`. With this method an epoch runs at every trigger, with or
        without rows.
        """
        return ()


@dataclass(frozen=True)
class BucketResult:
    """The result of a bucket function for one bucket."""

    state: pa.Table
    """The new state; it replaces the old one."""
    rows: pa.Table | None = None
    outputs: Mapping[str, pa.Table] = field(default_factory=dict)
    """Rows of side outputs."""
    wake_at: datetime | None = None
    """Call again when the watermark has reached this time, with or without rows."""
    rejects: tuple[pa.Table, str] | None = None
    """Input rows that it cannot handle, and why."""


class BucketFunction:
    """Called once per bucket of keys and epoch, with whole Arrow tables: the fastest way."""

    output: ClassVar[Mapping[str, str]] = {}
    outputs: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    state: ClassVar[Mapping[str, str]] = {}
    """Column → type of the bucket's state table; by convention the key's columns come first."""

    def process(self, keys: tuple[str, ...], rows: pa.Table, state: pa.Table, moment: Moment) -> BucketResult:
        """All rows of the bucket, in the order of event time. `keys` names the key's columns; a key is always in the same bucket."""
        raise NotImplementedError


def as_micros(time: datetime) -> int:
    """Times without a zone are UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def as_datetime(micros: int) -> datetime:
    return _EPOCH + min(micros, _LAST) * _MICROSECOND
