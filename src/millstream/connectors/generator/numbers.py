"""Generated columns of numbers, times and booleans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from millstream.connectors.generator.hash_random import ROW, Dice, Finite, GeneratedField, Whole, double, long
from millstream.plan.options import Duration

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SequenceField(GeneratedField):
    """Whole numbers in order: `start`, `start + step`, …"""

    type: Literal["sequence"]
    """The kind of column."""
    start: Whole = 0
    """The first number."""
    step: Whole = 1
    """From one row to the next."""

    @property
    def arrow(self) -> pa.DataType:
        return pa.int64()

    def value_sql(self, dice: Dice) -> str:
        stepped = ROW if self.step == 1 else f"{ROW} * {long(self.step)}"
        return stepped if self.start == 0 else f"{long(self.start)} + {stepped}"


class UniformField(GeneratedField):
    """A number between two, all equally likely. Whole bounds give whole numbers, both bounds included."""

    type: Literal["uniform"]
    """The kind of column."""
    min: Whole | Finite
    """The smallest number."""
    max: Whole | Finite
    """The largest number."""

    @model_validator(mode="after")
    def _check_bounds(self) -> UniformField:
        if self.min > self.max:
            raise ValueError(f"`min` is {self.min}, above `max`, which is {self.max}")
        if self._whole and self.max - self.min >= 2**63 - 1:
            raise ValueError("the range from `min` to `max` has more integers than 63 bits can represent")
        return self

    @property
    def _whole(self) -> bool:
        return isinstance(self.min, int) and isinstance(self.max, int)

    @property
    def arrow(self) -> pa.DataType:
        return pa.int64() if self._whole else pa.float64()

    def value_sql(self, dice: Dice) -> str:
        if self._whole:
            return f"{long(int(self.min))} + {dice.below(int(self.max) - int(self.min) + 1, 'number')}"
        return f"{double(self.min)} + {dice.fraction('number')} * {double(self.max - self.min)}"


class NormalField(GeneratedField):
    """Numbers around a mean, as a bell curve."""

    type: Literal["normal"]
    """The kind of column."""
    mean: Finite = 0.0
    """The mean."""
    stddev: Annotated[Finite, Field(ge=0)] = 1.0
    """The standard deviation."""

    @property
    def arrow(self) -> pa.DataType:
        return pa.float64()

    def value_sql(self, dice: Dice) -> str:
        radius = f"sqrt(-2.0D * ln(1.0D - {dice.fraction('radius')}))"
        return f"{double(self.mean)} + {double(self.stddev)} * {radius} * cos(6.283185307179586D * {dice.fraction('angle')})"


class BoolField(GeneratedField):
    """True or false."""

    type: Literal["bool"]
    """The kind of column."""
    probability: float = Field(default=0.5, ge=0, le=1)
    """The probability of true."""

    @property
    def arrow(self) -> pa.DataType:
        return pa.bool_()

    def value_sql(self, dice: Dice) -> str:
        return f"{dice.fraction('coin')} < {double(self.probability)}"


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class TimestampField(GeneratedField):
    """Times that advance from row to row, and are out of order when there is jitter."""

    type: Literal["timestamp"]
    """The kind of column."""
    start: Annotated[datetime, AfterValidator(_utc)] = datetime(2026, 1, 1, tzinfo=UTC)
    """The time of the first row; UTC when it names no zone."""
    step: Duration = Duration("1s")
    """From one row to the next."""
    jitter: Duration = Duration("0s")
    """Each row is later by a random time of less than this."""

    @property
    def arrow(self) -> pa.DataType:
        return pa.timestamp("us", "UTC")

    def value_sql(self, dice: Dice) -> str:
        start = (self.start - _EPOCH) // timedelta(microseconds=1)
        late = f" + {dice.below(self.jitter.milliseconds * 1000, 'jitter')}" if self.jitter.milliseconds else ""
        return f"timestamp_micros({long(start)} + {ROW} * {self.step.milliseconds * 1000}L{late})"
