"""Reads times in Spark's expressions: a column or the edge of a window, moved by a fixed span or cut to a unit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.sql.catalyst.bridge import Bridge, Expression

_DAY_US = 86_400_000_000
_HOUR_US = _DAY_US // 24
_LONGEST_US = {
    # with some hours for a clock that is set back
    "second": _HOUR_US // 3600,
    "minute": _HOUR_US // 60,
    "hour": 3 * _HOUR_US,
    "day": _DAY_US + 3 * _HOUR_US,
    "week": 8 * _DAY_US,
    "month": 32 * _DAY_US,
    "quarter": 94 * _DAY_US,
    "year": 367 * _DAY_US,
}
"""How far the start of a unit is from a time in it, at most. Zones are set back by whole minutes in our days, and by seconds long ago."""
_SAME = {"KnownNullable", "KnownNotNull", "PreciseTimestampConversion"}
_EDGES = ("start", "end")
_SPAN = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
"""The type of a span that is stored in microseconds."""


@dataclass(frozen=True, slots=True)
class Place:
    """A time in a row: a column, or the edge of a window."""

    column: int
    field: str = ""


@dataclass(frozen=True, slots=True)
class Exact:
    """A time that is always the same span after another one."""

    place: Place
    plus_us: int = 0


class Times:
    """Reads expressions."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def exact(self, value: Expression) -> Exact | None:
        """A timestamp as another one, moved by a fixed span."""
        return self._exact(value) if self._type(value) == "timestamp" else None

    def _exact(self, value: Expression) -> Exact | None:
        kind, inner = self._bridge.kind(value), self._bridge.children(value)
        if kind == "AttributeReference":
            return Exact(Place(int(value.exprId().id())))
        if kind == "GetStructField":
            named = self._bridge.kind(inner[0]) == "AttributeReference" and int(value.ordinal()) < len(_EDGES)
            return Exact(Place(int(inner[0].exprId().id()), _EDGES[int(value.ordinal())])) if named else None
        if kind in _SAME:
            return self._exact(inner[0])
        span = self._span(kind, inner) if len(inner) == 2 else None
        base = self._exact(inner[0]) if span is not None else None
        return Exact(base.place, base.plus_us + span) if base is not None and span is not None else None

    def _span(self, kind: str, sides: list[Expression]) -> int | None:
        """The microseconds that an expression adds to a time. Spans of days follow the clock of a zone."""
        if self._bridge.kind(sides[1]) != "Literal" or not isinstance(sides[1].value(), int):
            return None
        span, unit = int(sides[1].value()), self._type(sides[1])
        if kind in {"Add", "Subtract"} and unit == "bigint":
            return span if kind == "Add" else -span
        return span if kind == "TimestampAddInterval" and _SPAN.fullmatch(unit) and abs(span) < _DAY_US else None

    def truncated_by(self, value: Expression) -> int | None:
        """How far `date_trunc` moves a time back, at most."""
        if self._bridge.kind(value) != "TruncTimestamp":
            return None
        unit = self._bridge.text_value(self._bridge.children(value)[0])
        return _LONGEST_US.get(unit.lower()) if unit is not None else None

    def is_null(self, value: Expression) -> bool:
        value = self._bridge.unnamed(value)
        return self._bridge.kind(value) == "Literal" and value.value() is None

    def fields_of(self, column: Expression) -> tuple[str, ...]:
        """The times that a column can hold."""
        kind = self._type(column)
        if kind == "timestamp":
            return ("",)
        return _EDGES if kind == "struct<start:timestamp,end:timestamp>" else ()

    def places_of(self, value: Expression) -> list[Place]:
        """The times that a value is, as it is."""
        if self._bridge.kind(value) == "AttributeReference":
            return [Place(int(value.exprId().id()), field) for field in self.fields_of(value)]
        exact = self.exact(value)
        return [exact.place] if exact is not None and not exact.plus_us else []

    def _type(self, value: Expression) -> str:
        return str(value.dataType().catalogString())
