"""Types of keys: which types are allowed, and which values can be looked up. Imports little, so that a check can use it."""

from __future__ import annotations

import pyarrow as pa

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_KEYS = (*INTEGERS, pa.string(), pa.date32())


def can_be_key(kind: pa.DataType) -> bool:
    return kind in _KEYS


def agrees(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of one type can be looked up as keys of the other."""
    if given == kind or pa.types.is_null(given) or pa.types.is_null(kind):
        return True
    whole = pa.types.is_integer(given) or (pa.types.is_decimal(given) and given.scale == 0)
    if kind in INTEGERS:
        return bool(whole)
    texts = whole or pa.types.is_date(given) or pa.types.is_large_string(given) or pa.types.is_boolean(given)
    return bool(kind == pa.string() and texts)


def spark_name(kind: pa.DataType) -> str:
    names = {pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT", pa.int64(): "BIGINT", pa.date32(): "DATE"}
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return names.get(kind, "TIMESTAMP" if pa.types.is_timestamp(kind) else "STRING")
