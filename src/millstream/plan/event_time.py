"""Event time: the column that says when a row happened, and how long its stream waits for late rows.

A source or transform declares it. The last declaration above a stateful node applies there, because Spark has one watermark per path.
Unusable times (null, before 1970, far in the future) make the row a reject, and the node's `on_error` applies.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, model_validator

from millstream.plan import types
from millstream.plan.options import Duration

TIMESTAMP = pa.timestamp("us", "UTC")
FAR_MS = 253_402_214_400_000
"""The last day of the year 9999, in milliseconds: a watermark that closes everything."""


class EventTime(BaseModel):
    """When rows happened."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: str
    """The column with the time: a timestamp, a number with `unit`, or text."""
    watermark: Duration = Duration("0s")
    """How long to wait for late rows: the watermark is the latest time seen, minus this."""
    unit: Literal["s", "ms", "us"] | None = None
    """What a number counts, since 1970."""
    format: str | None = None
    """How text is read, in Spark's pattern letters, such as `yyyy-MM-dd HH:mm:ss`. Default: ISO 8601."""
    idle_after: Duration | None = None
    """When this input has been idle for this long, and others have not, the watermark advances without it."""
    max_ahead: Duration = Duration("1d")
    """A row whose time is further ahead of the wall clock than this is a reject and does not move the watermark."""

    def __init__(self, column: str | None = None, /, **options: Any) -> None:
        super().__init__(**({"column": column} if column is not None else {}), **options)

    @model_validator(mode="after")
    def _one_way_to_read(self) -> EventTime:
        if self.unit and self.format:
            raise ValueError("`unit` is for numbers and `format` for text: give one of them")
        return self

    def fits(self, kind: pa.DataType) -> str:
        """Why a column of this type cannot be used as a time; empty when it can, or when the type is unknown."""
        if kind == types.UNKNOWN:
            return ""
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return "" if self.unit else "is a number: say what it counts, `unit: s`, `ms` or `us`"
        if self.unit and not pa.types.is_timestamp(kind):
            return "is not a number: leave `unit` out"
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return ""
        return "cannot be read as a time"

    def unusable(self, value: str) -> str:
        """Why a refused value is not a usable event time; the value as text, or `null`."""
        seconds = self._seconds(value)
        if value == "null":
            return f"the event time `{self.column}` is null"
        if seconds is None:
            return f"the event time `{self.column}` cannot be read: {value}"
        if seconds < 0:
            return f"the event time `{self.column}` is before 1970: {value}"
        return f"the event time `{self.column}` is more than {self.max_ahead} ahead of the clock: {value}"

    def _seconds(self, value: str) -> float | None:
        if self.unit:
            ticks = {"s": 1, "ms": 1_000, "us": 1_000_000}[self.unit]
            return float(value) / ticks if re.fullmatch(r"-?[\d.]+(E\d+)?", value) else None
        year = re.match(r"([+-]?\d{4,6})-\d\d-\d\d", value)
        return (int(year[1]) - 1970) * 31_556_952 if year else None

    def with_timestamp(self, schema: pa.Schema) -> pa.Schema:
        """The schema with the column as a timestamp."""
        index = schema.get_field_index(self.column)
        if index < 0 or pa.types.is_timestamp(schema.field(index).type) or self.fits(schema.field(index).type):
            return schema
        return schema.set(index, pa.field(self.column, TIMESTAMP))
