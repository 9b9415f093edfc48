"""Arrow columns as JSON and back, without loss and column by column: no Python loop over rows, except for bytes and small decimals.

A *narrow* column has its numbers as JSON numbers. Where JSON or a double cannot hold one of them (NaN, -0, an integer beyond 2^53) the
whole column is *wide*: its 64-bit integers and floats are text. Decimals, dates and times are text, bytes are hexadecimal text.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

JsonColumn = dict[str, Any]
_SAFE = 2**53 - 1
_PLAIN_SCALE = 6
"""Arrow writes decimals with more places in scientific notation."""


class UnfitTypeError(TypeError):
    """A type that has no counterpart in a script."""


def describe_type(kind: pa.DataType) -> dict[str, Any]:
    """A type as the prelude reads it."""
    t = pa.types
    if t.is_boolean(kind):
        return {"k": "bool"}
    if t.is_int64(kind):
        return {"k": "long"}
    if t.is_signed_integer(kind):
        return {"k": "int", "bits": kind.bit_width}
    if t.is_float32(kind) or t.is_float64(kind):
        return {"k": "float", "single": t.is_float32(kind)}
    if t.is_string(kind) or t.is_large_string(kind):
        return {"k": "string"}
    if t.is_binary(kind) or t.is_large_binary(kind):
        return {"k": "bytes"}
    if t.is_decimal128(kind):
        return {"k": "decimal", "p": kind.precision, "s": kind.scale}
    if t.is_date32(kind):
        return {"k": "date"}
    if t.is_timestamp(kind):
        return {"k": "time", "zone": kind.tz is not None}
    if t.is_null(kind):
        return {"k": "null"}
    return _describe_nested(kind)


def _describe_nested(kind: pa.DataType) -> dict[str, Any]:
    t = pa.types
    if t.is_list(kind) or t.is_large_list(kind):
        return {"k": "list", "of": describe_type(kind.value_type)}
    if t.is_map(kind):
        return {"k": "map", "key": describe_type(kind.key_type), "of": describe_type(kind.item_type)}
    if t.is_struct(kind):
        return {"k": "struct", "fields": [{"n": field.name, "t": describe_type(field.type)} for field in kind]}
    raise UnfitTypeError(f"a script cannot hold a value of the type {kind}")


def describe_schema(schema: pa.Schema) -> list[dict[str, Any]]:
    return [{"n": field.name, "t": describe_type(field.type)} for field in schema]


def write_column(array: pa.Array) -> JsonColumn:
    """A column as JSON values."""
    wide = any(map(_needs_width, _leaves(array)))
    return {"w": wide, "v": _as_json(array, wide).to_pylist()}


def read_column(column: JsonColumn, kind: pa.DataType) -> pa.Array:
    """A column of a result; an ArrowException when a value does not fit."""
    return _from_json(pa.array(column["v"], _json_type(kind, column["w"])), kind)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    t = pa.types
    if t.is_list(array.type) or t.is_large_list(array.type):
        yield from _leaves(array.flatten())
    elif t.is_map(array.type):
        yield from _leaves(array.keys)
        yield from _leaves(array.items)
    elif t.is_struct(array.type):
        for part in array.flatten():
            yield from _leaves(part)
    else:
        yield array


def _needs_width(leaf: pa.Array) -> bool:
    if pa.types.is_int64(leaf.type):
        bounds = pc.min_max(leaf).as_py()
        return bounds["min"] is not None and (bounds["min"] < -_SAFE or bounds["max"] > _SAFE)
    return bool(pa.types.is_floating(leaf.type)) and pc.all(pc.is_finite(leaf)).as_py() is False


def _as_json(array: pa.Array, wide: bool) -> pa.Array:
    t, kind = pa.types, array.type
    if wide and (t.is_int64(kind) or t.is_floating(kind)):
        return (array.cast(pa.float64()) if t.is_float32(kind) else array).cast(pa.string())
    if t.is_decimal(kind):
        return array.cast(pa.string()) if kind.scale <= _PLAIN_SCALE else pa.array(map(_plain, array.to_pylist()), pa.string())
    if t.is_date(kind):
        return array.cast(pa.string())
    if t.is_timestamp(kind):
        exact = array.cast(pa.timestamp("us", "UTC" if kind.tz else None))
        return pc.binary_replace_slice(exact.cast(pa.string()).cast(pa.binary()), 10, 11, b"T").cast(pa.string())
    if t.is_binary(kind) or t.is_large_binary(kind):
        return pa.array([None if value is None else value.hex() for value in array.to_pylist()], pa.string())
    if t.is_list(kind) or t.is_large_list(kind) or t.is_map(kind):
        whole = _without_offset(array)
        return pa.ListArray.from_arrays(whole.offsets.cast(pa.int32()), _items(whole, wide), mask=whole.is_null())
    if t.is_struct(kind):
        whole = _without_offset(array)
        parts = [_as_json(whole.field(index), wide) for index in range(kind.num_fields)]
        return _struct(parts, [field.name for field in kind], whole)
    return array


def _items(array: pa.Array, wide: bool) -> pa.Array:
    if not pa.types.is_map(array.type):
        return _as_json(array.values, wide)
    return pa.StructArray.from_arrays([_as_json(array.keys, wide), _as_json(array.items, wide)], ["key", "value"])


def _without_offset(array: pa.Array) -> pa.Array:
    """Arrow cannot build a nested array with a mask from offsets that do not begin at 0."""
    return array.take(pa.array(range(len(array)), pa.int64())) if array.offset else array


def _struct(parts: list[pa.Array], names: list[str], like: pa.Array) -> pa.Array:
    fields = [pa.field(name, part.type) for name, part in zip(names, parts, strict=True)]
    if not parts:
        return like
    return pa.StructArray.from_arrays(parts, fields=fields, mask=like.is_null())


def _plain(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def _json_type(kind: pa.DataType, wide: bool) -> pa.DataType:
    t = pa.types
    if t.is_int64(kind) or t.is_floating(kind):
        return pa.string() if wide else pa.float64() if t.is_floating(kind) else kind
    if t.is_list(kind) or t.is_large_list(kind):
        return pa.list_(_json_type(kind.value_type, wide))
    if t.is_map(kind):
        return pa.list_(pa.struct([("key", _json_type(kind.key_type, wide)), ("value", _json_type(kind.item_type, wide))]))
    if t.is_struct(kind):
        return pa.struct([pa.field(field.name, _json_type(field.type, wide)) for field in kind])
    return kind if t.is_boolean(kind) or t.is_integer(kind) or t.is_null(kind) else pa.string()


def _from_json(array: pa.Array, kind: pa.DataType) -> pa.Array:
    t = pa.types
    if t.is_binary(kind) or t.is_large_binary(kind):
        return pa.array([None if text is None else bytes.fromhex(text) for text in array.to_pylist()], kind)
    if t.is_list(kind) or t.is_large_list(kind):
        made: Any = pa.LargeListArray if t.is_large_list(kind) else pa.ListArray
        return made.from_arrays(array.offsets, _from_json(array.values, kind.value_type), mask=array.is_null()).cast(kind)
    if t.is_map(kind):
        pairs, nulls = array.values, array.is_null()
        keys, items = _from_json(pairs.field(0), kind.key_type), _from_json(pairs.field(1), kind.item_type)
        offsets = pa.array(array.offsets.to_pylist(), pa.int32())
        if nulls.true_count:
            gone = pa.concat_arrays([nulls, pa.array([False])])
            offsets = pc.if_else(gone, pa.scalar(None, pa.int32()), offsets)
        return pa.MapArray.from_arrays(offsets, keys, items).cast(kind)
    if t.is_struct(kind):
        parts = [_from_json(part, kind.field(index).type) for index, part in enumerate(array.flatten())]
        return _struct(parts, [field.name for field in kind], array).cast(kind)
    return array if array.type.equals(kind) else array.cast(kind)
