"""The types of columns and their values: few of each type, so that joins and groups meet, and many nulls."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

SQL_TYPES = {
    "bigint": "bigint",
    "int": "int",
    "double": "double",
    "decimal": "decimal(10,2)",
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "array": "array<bigint>",
    "struct": "struct<x:bigint,y:string>",
    "map": "map<string,bigint>",
}
WEIGHTS = {
    "bigint": 6,
    "int": 3,
    "double": 4,
    "decimal": 2,
    "string": 4,
    "boolean": 1,
    "date": 1,
    "timestamp": 1,
    "array": 1,
    "struct": 1,
    "map": 0.7,
}
NUMBERS = ("bigint", "int", "double", "decimal")
VALUES: dict[str, tuple[Any, ...]] = {
    "bigint": (0, 1, 1, 2, 2, 3, -1),
    "int": (0, 1, 2, 2, 3),
    # multiples of 1/4: their sums do not depend on the order
    "double": (0.0, -0.0, 0.25, 1.5, 1.5, -2.0, 2.0, math.nan, math.inf),
    "decimal": (Decimal("0.00"), Decimal("0.10"), Decimal("1.25"), Decimal("-2.50"), Decimal("1.20")),
    "string": ("a", "a", "b", "b", "A", "ab", ""),
    "boolean": (True, False),
    "date": (date(2024, 1, 1), date(2024, 1, 2), date(2024, 2, 1)),
    "timestamp": (datetime(2024, 1, 1), datetime(2024, 1, 1, 10, 30), datetime(2024, 1, 2, 0, 0, 1)),
    "array": ([], [1], [1, 2], [None, 1], [2, 1, 1]),
    "struct": ((1, "a"), (1, None), (2, "b"), (None, None)),
    "map": ({}, {"a": 1}, {"a": 1, "b": None}),
}


def draw_type(dice: Random) -> str:
    return dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def draw_value(dice: Random, kind: str, nulls: float = 0.15) -> Any:
    return None if dice.random() < nulls else dice.choice(VALUES[kind])


def literal(kind: str, value: Any) -> str:
    """The value as an SQL expression of its type."""
    if value is None or (kind == "array" and not value):
        inner = "NULL" if value is None else "array()"
        return f"CAST({inner} AS {SQL_TYPES[kind]})"
    return _present(kind, value)


def _present(kind: str, value: Any) -> str:
    match kind:
        case "bigint":
            return f"{value}L"
        case "double":
            return f"{value}D" if math.isfinite(value) else f"CAST('{value}' AS double)"
        case "decimal":
            return f"CAST({value} AS decimal(10,2))"
        case "string":
            return f"'{value}'"
        case "date" | "timestamp":
            return f"{kind.upper()}'{value}'"
        case "array":
            return f"array({', '.join(literal('bigint', item) for item in value)})"
        case "struct":
            return f"named_struct('x', {literal('bigint', value[0])}, 'y', {literal('string', value[1])})"
        case "map":
            pairs = ", ".join(f"'{key}', {literal('bigint', item)}" for key, item in value.items())
            return f"map({pairs})" if pairs else "CAST(map() AS map<string,bigint>)"
    return str(value)
