"""Keyed streams and windows: the types are here, so that programs can be checked; running them comes with a later version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from millstream.api.places import caller
from millstream.api.stream import DataStream
from millstream.errors import Diagnostic, SpecError
from millstream.plan.expressions import Expr
from millstream.plan.options import Duration


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
