"""What the operators of a query cost in an epoch, and how what they keep grows.

The size of a row is estimated from the types of its columns, as Spark lays out a row: 8 bytes for each column, and as many again as the
value of a text or an array takes. Texts are assumed to have 20 characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.engine.incremental.compilation import Compilation
from millstream.engine.incremental.leaving.rules import leaving_rules
from millstream.engine.incremental.operators.base import Operator
from millstream.engine.incremental.operators.top import TopRanks, TopRows
from millstream.engine.incremental.tracing import SMALL, operator_of
from millstream.sql.catalyst.bridge import Bridge

_COSTS = {"sums": "touched groups", "table": "changed keys", "join by key": "touched keys"}
_COSTS_BY_STEP = {"Aggregate": "touched groups", "Window": "touched partitions"}
_ALL_ROWS = "all rows"
_UNITS_US = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000}
_FIXED_BYTES = 8
_ROW_BYTES = 64
"""The object of a row, and which of its columns are null. Rows of the last epochs take less: they are compressed until they are merged."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One operator."""

    operator: Operator
    cost: str
    """What is computed in an epoch."""
    row_bytes: tuple[int, ...]
    """The estimated size of a row of each store, in the order of `Operator.stores`; it is also the number of MB per million rows."""
    bounded_by: str
    """What keeps its stores from growing without bound; empty if nothing does."""


def growth_of(compilation: Compilation) -> list[Growth]:
    schemas = compilation.epoch_for(SMALL).schemas
    found, rules = [], leaving_rules(compilation)
    for operator in compilation.operators:
        stores = {name: output for name, output in schemas.items() if operator_of(name) == str(operator.number)}
        sizes = tuple(_row_bytes(compilation.bridge, output) for output in stores.values())
        leaving = [rules[name].lag_us for name in stores if name in rules]
        bound = _until_watermark(max(leaving)) if leaving and len(leaving) == len(stores) else _bound(compilation, operator)
        found.append(Growth(operator, _cost(operator), sizes, bound if sizes else ""))
    return found


def _cost(operator: Operator) -> str:
    if isinstance(operator, TopRows):
        return "new rows and those it keeps"
    if isinstance(operator, TopRanks) and operator.keys:
        return "touched partitions"
    if operator.key == _ALL_ROWS:
        return "its whole input"
    if operator.kind == "by key":
        return _COSTS_BY_STEP.get(operator.step.kind, "touched keys")
    return _COSTS.get(operator.kind, "changed rows") if operator.key else "changed rows"


def _until_watermark(lag_us: int) -> str:
    """The rows that stay if they leave when the watermark has passed a time in them by so much."""
    if lag_us <= 0:
        return "times after the watermark"
    text = next((f"{lag_us // us}{unit}" for unit, us in _UNITS_US.items() if lag_us % us == 0), f"{lag_us}us")
    return f"the last {text} before the watermark"


def _bound(compilation: Compilation, operator: Operator) -> str:
    """A number of rows, inputs that are bounded so, or inputs whose rows all expire."""
    if most := _most_rows(operator):
        return most
    if operator.inputs and all(map(_is_bounded, operator.inputs)):
        return "bounded inputs"
    names = dict.fromkeys(step.input for step in operator.step.walk() if step.input)
    return ", ".join(names) if all(compilation.feeds[name].ttl_ms is not None for name in names) else ""


def _most_rows(operator: Operator) -> str:
    """How many rows an operator returns at most, if that is a number."""
    if operator.kind == "sums" and not operator.key:
        return "one row"
    counted = isinstance(operator, TopRows) or (isinstance(operator, TopRanks) and not operator.keys and operator.counts == "rows")
    return f"{operator.most} rows" if isinstance(operator, TopRows | TopRanks) and counted else ""


def _is_bounded(operator: Operator) -> bool:
    return bool(_most_rows(operator)) or (bool(operator.inputs) and all(map(_is_bounded, operator.inputs)))


def _row_bytes(bridge: Bridge, output: Any) -> int:
    return _ROW_BYTES + sum(_value_bytes(column.dataType()) for column in bridge.items(output))


def _value_bytes(kind: Any) -> int:
    """The bytes of a value in a row: values that do not fit into 8 bytes stand behind the columns."""
    size = int(kind.defaultSize())
    return _FIXED_BYTES if size <= _FIXED_BYTES else _FIXED_BYTES + -(-size // 8) * 8
