"""Windows over event time: the user's options, and when a row's first window closes.

Windows of fixed size count from 1970 in UTC, shifted by `offset`; with a `time_zone`, whole days and weeks follow the local calendar, so
that the day of a clock change has 23 or 25 hours. A week starts on Monday.
"""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from millstream.plan.options import Duration, Expression

DAY_MS = 86_400_000
_MONDAY = "DATE'1970-01-05'"


class _Window(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Sized(_Window):
    size: Duration
    """How long a window is."""
    offset: Duration = Duration("0s")
    """Moves the start of every window: `size: 1d`, `offset: 6h` gives days from six to six."""
    time_zone: str | None = None
    """For windows of whole days: the time zone whose days they are, such as `Europe/Berlin`."""

    @property
    def step_ms(self) -> int:
        """The time from one window's start to the next one's."""
        return self.size.milliseconds

    @field_validator("size")
    @classmethod
    def _positive(cls, size: Duration) -> Duration:
        if size.milliseconds <= 0:
            raise ValueError("a window must be longer than zero")
        return size

    @field_validator("time_zone")
    @classmethod
    def _known(cls, zone: str | None) -> str | None:
        try:
            if zone is not None:
                ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"there is no time zone `{zone}`; write one such as `Europe/Berlin`") from None
        return zone

    @model_validator(mode="after")
    def _whole_days(self) -> _Sized:
        if self.time_zone and (self.size.milliseconds % DAY_MS or self.step_ms % DAY_MS):
            raise ValueError("with a `time_zone`, windows are whole days; shorter windows are the same in every zone: use `offset`")
        if self.offset.milliseconds >= self.step_ms:
            raise ValueError("`offset` must be shorter than the time from one window to the next")
        return self


class TumblingWindow(_Sized):
    """Windows of one size, one after the other."""

    type: Literal["tumbling"] = "tumbling"

    @classmethod
    def of(cls, size: str, *, offset: str = "0s", time_zone: str | None = None) -> TumblingWindow:
        return cls(size=Duration(size), offset=Duration(offset), time_zone=time_zone)


class SlidingWindow(_Sized):
    """Windows of one size that start every so often and overlap: a row belongs to several."""

    type: Literal["sliding"] = "sliding"
    slide: Duration
    """The time from one window's start to the next one's."""

    @property
    def step_ms(self) -> int:
        return self.slide.milliseconds

    @model_validator(mode="after")
    def _overlapping(self) -> SlidingWindow:
        if not 0 < self.slide.milliseconds <= self.size.milliseconds:
            raise ValueError("`slide` must be longer than zero and not longer than `size`: rows would fall between the windows")
        return self

    @classmethod
    def of(cls, size: str, slide: str, *, offset: str = "0s", time_zone: str | None = None) -> SlidingWindow:
        return cls(size=Duration(size), slide=Duration(slide), offset=Duration(offset), time_zone=time_zone)


class SessionWindow(_Window):
    """Rows belong together until a gap: a window ends when no row has come for this long."""

    type: Literal["session"] = "session"
    gap: Duration | Expression = Field(union_mode="left_to_right")
    """The silence that ends a session: a duration, or an expression over the row that gives an interval or a text such as `5 minutes`."""

    @field_validator("gap")
    @classmethod
    def _positive(cls, gap: Duration | str) -> Duration | str:
        if isinstance(gap, Duration) and gap.milliseconds <= 0:
            raise ValueError("the gap must be longer than zero")
        return gap

    @property
    def gap_sql(self) -> str:
        """The gap as Spark's `session_window` takes it."""
        return f"'{self.gap.milliseconds} milliseconds'" if isinstance(self.gap, Duration) else self.gap

    @classmethod
    def with_gap(cls, gap: str) -> SessionWindow:
        return cls(gap=gap)


Window = Annotated[TumblingWindow | SlidingWindow | SessionWindow, Field(discriminator="type")]


def closes(window: TumblingWindow | SlidingWindow | SessionWindow, time: str) -> str:
    """SQL for the time at which the first window of a row closes."""
    if isinstance(window, SessionWindow):
        return f"{time} + CAST({window.gap_sql} AS INTERVAL)"
    if window.time_zone:
        ends = ", ".join(end for _, end in local_windows(window, time))
        return f"array_min(filter(array({ends}), closing -> closing > {time}))"
    size, step, offset = window.size.milliseconds * 1000, window.step_ms * 1000, window.offset.milliseconds * 1000
    return f"timestamp_micros(CAST(floor((unix_micros({time}) - {size} - {offset}) / {step}D) AS BIGINT) * {step} + {step + offset + size})"


def local_windows(window: TumblingWindow | SlidingWindow, time: str) -> list[tuple[str, str]]:
    """SQL for start and end of every local-calendar window that can contain a time."""
    days, size = window.step_ms // DAY_MS, window.size.milliseconds // DAY_MS
    moved = f"INTERVAL '{window.offset.milliseconds} milliseconds'"
    date = f"to_date(from_utc_timestamp({time}, '{window.time_zone}') - {moved})"
    last = f"CAST(floor(datediff({date}, {_MONDAY}) / {days}D) AS INT) * {days}"

    def instant(day: int) -> str:
        return f"to_utc_timestamp(CAST(date_add({_MONDAY}, {last} + {day}) AS TIMESTAMP) + {moved}, '{window.time_zone}')"

    starts = range(0, -size, -days)
    return [(instant(start), instant(start + size)) for start in starts]
