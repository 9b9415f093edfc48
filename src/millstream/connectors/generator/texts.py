"""Generated columns of chosen values and texts."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field, model_validator

from millstream.connectors.generator.hash_random import Dice, Finite, GeneratedField, Scalar, double, literal, text, type_of
from millstream.plan.expressions import quote_column

_PLACE = re.compile(r"\{([^{}]+)\}")


class ChoiceField(GeneratedField):
    """One of several values."""

    type: Literal["choice"]
    """The kind of column."""
    values: Annotated[tuple[Scalar, ...], Field(min_length=1)]
    """The values: all texts, all numbers, or all true or false."""
    weights: tuple[Annotated[Finite, Field(ge=0)], ...] = ()
    """The relative frequency of each value. Default: all equal."""

    @model_validator(mode="after")
    def _check_weights(self) -> ChoiceField:
        if self.weights and (len(self.weights) != len(self.values) or not any(self.weights)):
            raise ValueError(f"`weights` takes one number for each of the {len(self.values)} values, and one of them above zero")
        type_of(self.values)
        return self

    @property
    def arrow(self) -> pa.DataType:
        return type_of(self.values)

    def value_sql(self, dice: Dice) -> str:
        values, place = [literal(value, self.arrow) for value in self.values], f"CAST({dice.below(len(self.values), 'place')} AS INT)"
        if len(set(self.weights)) > 1:
            shares, others = _alias_table(self.weights)
            stays = f"{dice.fraction('coin')} < get(array({', '.join(map(double, shares))}), {place})"
            place = f"if({stays}, {place}, get(array({', '.join(map(str, others))}), {place}))"
        return f"get(array({', '.join(values)}), {place})"


class ConstantField(GeneratedField):
    """The same value in every row."""

    type: Literal["constant"]
    """The kind of column."""
    value: Scalar
    """The value."""

    @property
    def arrow(self) -> pa.DataType:
        return type_of((self.value,))

    def value_sql(self, dice: Dice) -> str:
        return literal(self.value, self.arrow)


class UuidField(GeneratedField):
    """A UUID in its usual spelling (version 4)."""

    type: Literal["uuid"]
    """The kind of column."""

    @property
    def arrow(self) -> pa.DataType:
        return pa.string()

    def value_sql(self, dice: Dice) -> str:
        # the bits that mean "version 4" and "variant 1" are set; the leading one makes `hex` give all 16 digits
        high = f"lpad(hex({dice.bits('high')} & -61441L | 16384L), 16, '0')"
        low = f"hex({dice.bits('low')} & 4611686018427387903L | shiftleft(-1L, 63))"
        parts = [f"substring({high}, {start}, {size})" for start, size in ((1, 8), (9, 4), (13, 4))]
        parts += [f"substring({low}, {start}, {size})" for start, size in ((1, 4), (5, 12))]
        joined = ", '-', ".join(parts)
        return f"lower(concat({joined}))"


class TemplateField(GeneratedField):
    """Text with the values of other columns in it."""

    type: Literal["template"]
    """The kind of column."""
    template: str
    """Such as `user-{id}`: a name in braces is replaced by that column's value."""

    @property
    def arrow(self) -> pa.DataType:
        return pa.string()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it uses."""
        return tuple(dict.fromkeys(_PLACE.findall(self.template)))

    def value_sql(self, dice: Dice) -> str:
        pieces = _PLACE.split(self.template)  # text, name, text, name, … text
        parts = [text(piece) if index % 2 == 0 else _as_text(piece) for index, piece in enumerate(pieces)]
        return f"concat({', '.join(parts)})"


def _as_text(name: str) -> str:
    return f"coalesce(CAST({quote_column(name)} AS STRING), '')"


def _alias_table(weights: tuple[float, ...]) -> tuple[list[float], list[int]]:
    """Walker's alias method: index i stays with probability shares[i], else it becomes others[i]. One lookup for any number of values."""
    count, total = len(weights), sum(weights)
    shares, others = [weight * count / total for weight in weights], list(range(count))
    poor, rich = [i for i in range(count) if shares[i] < 1], [i for i in range(count) if shares[i] >= 1]
    while poor and rich:
        giver, taker = rich[-1], poor.pop()
        others[taker] = giver
        shares[giver] -= 1 - shares[taker]
        if shares[giver] < 1:
            poor.append(rich.pop())
    return [1.0 if other == i else share for i, (share, other) in enumerate(zip(shares, others, strict=True))], others
