"""Random numbers as hashes: a pure function of the seed, the column's name and the row's number, the column `ROW`.

So every epoch can be repeated, on any number of cores, with the same rows; and because it is plain Spark SQL, Spark compiles a whole row
into one loop.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

ROW = "_row"
Scalar = bool | int | float | str
Finite = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-(2**63) + 1, le=2**63 - 1)]


class Dice:
    """The random numbers of one column. Each use has its own numbers."""

    def __init__(self, seed: int, column: str) -> None:
        self._origin = f"{seed}/{column}"

    def bits(self, use: str) -> str:
        """64 random bits."""
        salt = int.from_bytes(hashlib.sha256(f"{self._origin}/{use}".encode()).digest()[:7], "big")
        return f"xxhash64({ROW}, {salt}L)"

    def below(self, limit: int, use: str) -> str:
        """A whole number from 0 up to, not including, the limit."""
        return f"pmod({self.bits(use)}, {limit}L)"

    def fraction(self, use: str) -> str:
        """A number from 0 up to, not including, 1: the upper 53 bits, which a double holds exactly."""
        return f"(shiftrightunsigned({self.bits(use)}, 11) * 1.1102230246251565E-16D)"


class GeneratedField(BaseModel):
    """A generated column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nulls: float = Field(default=0.0, ge=0, le=1)
    """The share of rows without a value."""

    @property
    def arrow(self) -> pa.DataType:
        """The column's type."""
        raise NotImplementedError

    def value_sql(self, dice: Dice) -> str:
        """SQL for the value of a row, without nulls."""
        raise NotImplementedError

    def column_sql(self, dice: Dice) -> str:
        value = self.value_sql(dice)
        return f"CASE WHEN {dice.fraction('nulls')} >= {double(self.nulls)} THEN {value} END" if self.nulls else value


def double(value: float) -> str:
    return f"{float(value)!r}D" if value >= 0 else f"({float(value)!r}D)"


def long(value: int) -> str:
    return f"{value}L" if value >= 0 else f"({value}L)"


def text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal(value: Scalar, kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return str(value).upper()
    if pa.types.is_integer(kind):
        return long(int(value))
    return double(float(value)) if pa.types.is_floating(kind) else text(str(value))


def type_of(values: tuple[Scalar, ...]) -> pa.DataType:
    """The column type of the values; ValueError when there is none."""
    kinds = {type(value) for value in values}
    for accepted, arrow in (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64()), ({str}, pa.string())):
        if kinds <= accepted:
            return arrow
    raise ValueError(f"the values mix {' and '.join(sorted(kind.__name__ for kind in kinds))}; a column has one type")
