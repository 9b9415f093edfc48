"""The types of columns and their values: few of each type, so that joins and groups meet, some at the limits of a type, and many nulls."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

SQL_TYPES = {
    "bigint": "bigint",
    "huge": "bigint",
    "int": "int",
    "double": "double",
    "float": "float",
    "decimal": "decimal(10,2)",
    "wide": "decimal(38,4)",
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "ntz": "timestamp_ntz",
    "array": "array<bigint>",
    "doubles": "array<double>",
    "struct": "struct<x:bigint,y:string>",
    "structs": "array<struct<x:bigint,y:string>>",
    "deep": "struct<l:array<double>,s:struct<x:bigint,y:string>>",
    "map": "map<string,bigint>",
}
WEIGHTS = {
    "bigint": 6,
    "huge": 1,
    "int": 3,
    "double": 4,
    "float": 0.5,
    "decimal": 2,
    "wide": 1,
    "string": 4,
    "binary": 0.5,
    "boolean": 1,
    "date": 1,
    "timestamp": 1,
    "ntz": 0.5,
    "array": 1,
    "doubles": 0.5,
    "struct": 1,
    "structs": 0.5,
    "deep": 0.5,
    "map": 0.5,
}
NUMBERS = ("bigint", "int", "double", "decimal")
"""Types of which every sum of values fits."""
VALUES: dict[str, tuple[Any, ...]] = {
    "bigint": (0, 1, 1, 2, 2, 3, -1),
    "huge": (2**63 - 1, -(2**63), 2**63 - 2, -(2**63) + 1, 2**53 + 1, 0, -1),
    "int": (0, 1, 2, 2, 3),
    # multiples of 1/4: their sums do not depend on the order
    "double": (0.0, -0.0, 0.25, 1.5, 1.5, -2.0, 2.0, math.nan, math.inf, -math.inf),
    "float": (0.0, -0.0, 0.25, 1.5, math.nan, math.inf),
    "decimal": (Decimal("0.00"), Decimal("0.10"), Decimal("1.25"), Decimal("-2.50"), Decimal("1.20")),
    "wide": (Decimal("9" * 34 + ".9999"), Decimal("-" + "9" * 34 + ".9999"), Decimal("0.0001"), Decimal("1" * 30 + ".0002"), Decimal(0)),
    "string": ("a", "a", "b", "b", "A", "ab", "", "a ", "é", "日本", "it's", "\\"),
    "binary": (b"", b"\x00", b"\xff", b"a", b"a"),
    "boolean": (True, False),
    "date": (date(2024, 1, 1), date(2024, 1, 2), date(2024, 2, 1), date(1582, 10, 10), date(9990, 12, 31)),
    "timestamp": (
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, 10, 30),
        datetime(2024, 1, 2, 0, 0, 1),
        datetime(1900, 1, 1, 0, 0, 0, 1),
        datetime(2024, 1, 1, 0, 0, 0, 999_999),
    ),
    "ntz": (datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 999_999), datetime(1582, 10, 10), datetime(9990, 12, 31)),
    "array": ([], [1], [1, 2], [None, 1], [2, 1, 1]),
    "doubles": ([], [0.0], [-0.0], [math.nan, None], [1.5, -0.0]),
    "struct": ((1, "a"), (1, None), (2, "b"), (None, None)),
    "structs": ([], [(1, "a")], [None], [(None, None), (2, "b")]),
    "deep": (([0.0], (1, "a")), ([-0.0], (1, "a")), (None, None), ([math.nan], (None, "b"))),
    "map": ({}, {"a": 1}, {"a": 1, "b": None}),
}


def draw_type(dice: Random) -> str:
    return dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]


def draw_value(dice: Random, kind: str, nulls: float = 0.15) -> Any:
    return None if dice.random() < nulls else dice.choice(VALUES[kind])


def literal(kind: str, value: Any) -> str:
    """The value as an SQL expression of its type."""
    if value is None or value in ([], {}):
        inner = "NULL" if value is None else "array()" if value == [] else "map()"
        return f"CAST({inner} AS {SQL_TYPES[kind]})"
    return _present(kind, value)


def _present(kind: str, value: Any) -> str:
    match kind:
        case "bigint" | "huge":
            return f"{value}L" if value > -(2**63) else "(-9223372036854775807L - 1L)"
        case "double":
            return f"{value}D" if math.isfinite(value) else f"CAST('{value}' AS double)"
        case "decimal" | "float" | "wide":
            return f"CAST('{value}' AS {SQL_TYPES[kind]})"
        case "string":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case "binary":
            return f"X'{value.hex()}'"
        case "date" | "timestamp":
            return f"{kind.upper()}'{value}'"
        case "ntz":
            return f"TIMESTAMP_NTZ'{value}'"
        case "array" | "doubles" | "structs":
            inner = {"array": "bigint", "doubles": "double", "structs": "struct"}[kind]
            return f"array({', '.join(literal(inner, item) for item in value)})"
        case "struct":
            return f"named_struct('x', {literal('bigint', value[0])}, 'y', {literal('string', value[1])})"
        case "deep":
            return f"named_struct('l', {literal('doubles', value[0])}, 's', {literal('struct', value[1])})"
        case "map":
            pairs = [f"'{key}', {literal('bigint', item)}" for key, item in value.items()]
            return f"map({', '.join(pairs)})"
    return str(value)
