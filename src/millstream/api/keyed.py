"""Keyed streams and windows: rows that belong together, by key and by time.

`stream.key_by("user").window(TumblingWindow.of("5m")).aggregate(total=sum_("amount"))` gives one row per user and five minutes;
without the window, running totals. `key_by()` with no column brings all rows together.
"""

from __future__ import annotations

from typing import Literal

from millstream.api.stream import DataStream, Value
from millstream.plan.error_policy import OnError
from millstream.plan.windows import SessionWindow, SlidingWindow, TumblingWindow
from millstream.worker.processing import BucketFunction, ProcessFunction

AnyWindow = TumblingWindow | SlidingWindow | SessionWindow


class KeyedStream:
    """Rows that belong together by key."""

    def __init__(self, stream: DataStream, columns: tuple[str, ...]) -> None:
        self.stream, self.columns = stream, columns

    def __repr__(self) -> str:
        return f"KeyedStream({self.stream.name} by {', '.join(self.columns) or 'nothing: all rows together'})"

    def window(self, window: AnyWindow) -> WindowedStream:
        """Group each key's rows by time."""
        return WindowedStream(self, window)

    def process(
        self,
        function: type[ProcessFunction] | type[BucketFunction] | str,
        *,
        name: str | None = None,
        on_error: OnError = "fail",
        buckets: int | None = None,
        timeout: str | None = None,
    ) -> DataStream:
        """A class that processes each key's rows, with state and timers; `output(name)` of the result reads its side outputs."""
        return self.stream.then("process", name, on_error, key_by=self.columns, function=function, buckets=buckets, timeout=timeout)

    def aggregate(self, *, name: str | None = None, on_error: OnError = "fail", **aggregates: Value) -> DataStream:
        """Running totals per key, as a changelog."""
        return self.stream.then("aggregate", name, on_error, key_by=self.columns, aggregate=_texts(aggregates))


class WindowedStream:
    """Rows of one key and one window belong together."""

    def __init__(self, keyed: KeyedStream, window: AnyWindow) -> None:
        self.keyed, self.assigned = keyed, window

    def __repr__(self) -> str:
        return f"WindowedStream({self.keyed!r}, {self.assigned!r})"

    def aggregate(
        self,
        *,
        emit: Literal["on_close", "updates"] = "on_close",
        allowed_lateness: str | None = None,
        late: OnError | None = None,
        name: str | None = None,
        on_error: OnError = "fail",
        **aggregates: Value,
    ) -> DataStream:
        """One row per key and window, when the window has closed; or with every update."""
        return self.keyed.stream.then(
            "window",
            name,
            on_error,
            key_by=self.keyed.columns,
            window=self.assigned,
            aggregate=_texts(aggregates),
            emit=emit,
            allowed_lateness=allowed_lateness,
            late=late,
        )


def _texts(aggregates: dict[str, Value]) -> dict[str, str]:
    return {name: str(value) for name, value in aggregates.items()}
