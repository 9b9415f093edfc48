"""Keyed streams and windows: the types are here, so that programs can be checked; running them comes with a later version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from millstream.api.places import caller
from millstream.api.stream import DataStream
from millstream.errors import Diagnostic, SpecError
from millstream.plan.expressions import Expr
from millstream.plan.nodes import OnError
from millstream.plan.options import Duration
from millstream.plan.processing import BucketFunction, ProcessFunction


@dataclass(frozen=True, slots=True)
class TumblingWindow:
    """Windows of one size, one after the other."""

    size: Duration

    @classmethod
    def of(cls, size: str) -> TumblingWindow:
        return cls(Duration(size))


class KeyedStream:
    """Rows that belong together by key."""

    def __init__(self, stream: DataStream, columns: tuple[str, ...]) -> None:
        self.stream, self.columns = stream, columns

    def window(self, window: TumblingWindow) -> WindowedStream:
        """Cut each key's rows by time."""
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
        """A class that sees each key's rows, with state and timers; `output(name)` of the result reads its side outputs."""
        return self.stream._then("process", name, on_error, key_by=self.columns, function=function, buckets=buckets, timeout=timeout)

    def aggregate(self, **aggregates: Expr) -> DataStream:
        """Running totals per key."""
        _not_yet("an aggregate over a keyed stream")


class WindowedStream:
    """Rows of one key and one window belong together."""

    def __init__(self, keyed: KeyedStream, window: TumblingWindow) -> None:
        self.keyed, self.assigned = keyed, window

    def aggregate(self, **aggregates: Expr) -> DataStream:
        """One row per key and window."""
        _not_yet("a windowed aggregate")


def _not_yet(what: str) -> NoReturn:
    raise SpecError(Diagnostic("MS036", f"{what} cannot be run by this version", caller(), help="keyed stages come with the next version"))
