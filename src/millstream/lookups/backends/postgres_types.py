"""Maps Postgres types to Arrow types, and back. Types that Arrow does not have (UUID, JSON, enumerations) are read as text."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "text": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
    "timestamp without time zone": pa.timestamp("us"),
}


def arrow_type(found: str) -> pa.DataType:
    if found.startswith("numeric("):
        precision, scale = (int(part) for part in found[8:-1].split(","))
        return pa.decimal128(min(38, precision), max(0, scale))
    return pa.decimal128(38, 9) if found == "numeric" else TYPES.get(found, pa.string())


def postgres_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    names = {value: name for name, value in TYPES.items()} | {pa.int8(): "smallint"}
    return names[kind]


def holds(declared: pa.DataType, natural: pa.DataType) -> bool:
    """Whether a column of the declared type can hold every value of the other."""
    if pa.types.is_integer(declared) and pa.types.is_integer(natural):
        return bool(declared.bit_width >= natural.bit_width) or declared == pa.int8()
    if pa.types.is_decimal(declared) and pa.types.is_decimal(natural):
        return True
    return bool(declared == pa.float64() and natural == pa.float32())


def possible(values: list[Any], kind: str) -> list[Any]:
    """Null instead of texts that are not UUIDs: no row has such a key, and Postgres would refuse the whole statement."""
    return [_uuid(value) for value in values] if kind == "uuid" else values


def _uuid(value: Any) -> str | None:
    try:
        return str(uuid.UUID(value))
    except ValueError:
        return None
