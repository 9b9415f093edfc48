"""Arrow types as people write them: `int64`, `decimal(18,2)`, `list<string>`, `struct<a: int64, b: string>`, and back.

A column whose type cannot be known without Spark has the type `null` here: `UNKNOWN`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from millstream.errors import nearest

UNKNOWN = pa.null()

_NAMED: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_ALIASES = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "utf8": "string",
    "str": "string",
    "bytes": "binary",
    "date32": "date",
}
_MEANT = {
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "timestamp_ltz": "timestamp",
    "time": "timestamp",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "uuid": "string",
    "json": "string",
    "number": "float64",
    "numeric": "decimal(18,2)",
    "decimal": "decimal(18,2)",
    "uint64": "int64",
    "uint32": "int64",
    "list": "list<string>",
    "array": "list<string>",
}
"""Type names of other systems → our names."""
_DECIMAL = re.compile(r"decimal(?:128)?\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def parse(text: str) -> pa.DataType:
    """The Arrow type of a name; ValueError with a sentence otherwise."""
    text = text.strip()
    name = _ALIASES.get(text.lower(), text.lower())
    if name in _NAMED:
        return _NAMED[name]
    if match := _DECIMAL.fullmatch(name):
        return _decimal(int(match[1]), int(match[2] or 0))
    outer, bracket, rest = text.partition("<")
    if bracket and rest.endswith(">"):
        return _nested_type(outer.strip().lower(), _split_parts(rest[:-1]))
    meant = f"did you mean `{_MEANT[name]}`?" if name in _MEANT else nearest(name, [*_NAMED, "decimal(18,2)", "list<string>"])
    raise ValueError(f"`{text}` is not a column type; {meant}")


def name_of(kind: pa.DataType) -> str:
    """The inverse of `parse`."""
    for name, known in _NAMED.items():
        if kind.equals(known):
            return name
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{name_of(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{name_of(kind.key_type)}, {name_of(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {name_of(field.type)}' for field in kind)}>"
    return {"large_string": "string", "large_binary": "binary", "null": "unknown"}.get(str(kind), str(kind))


def schema(columns: Mapping[str, str]) -> pa.Schema:
    return pa.schema([pa.field(name, parse(kind)) for name, kind in columns.items()])


def columns(of: pa.Schema) -> dict[str, str]:
    return {field.name: name_of(field.type) for field in of}


def _decimal(precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= 38 or scale > precision:
        raise ValueError(f"decimal({precision},{scale}) is out of range; the precision goes from 1 to 38")
    return pa.decimal128(precision, scale)


def _nested_type(outer: str, parts: list[str]) -> pa.DataType:
    if outer in {"list", "array"} and len(parts) == 1:
        return pa.list_(parse(parts[0]))
    if outer == "map" and len(parts) == 2:
        return pa.map_(parse(parts[0]), parse(parts[1]))
    if outer == "struct" and all(":" in part for part in parts):
        pairs = [part.split(":", 1) for part in parts]
        return pa.struct([pa.field(name.strip(), parse(kind)) for name, kind in pairs])
    raise ValueError(f"`{outer}<…>` is not a column type; nested types are list<T>, map<K, V> and struct<name: T>")


def _split_parts(text: str) -> list[str]:
    """The parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
