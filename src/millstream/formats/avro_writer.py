"""Writes columns as an Avro schema, deterministically: the same columns give the same text.

Every field is nullable with default null, so that columns can be added and removed without breaking readers. Nested records are named after
their field, prefixed with the record's name, so that two of them never have the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from millstream.formats.avro import AvroSchema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int"),
    (pa.types.is_int16, "int"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
)


def schema_of(columns: pa.Schema, name: str, key: tuple[str, ...] = ()) -> str:
    """The schema of a record with these columns; ValueError with a sentence for types that Avro does not have."""
    record = {"type": "record", "name": name, "fields": _fields(columns, name)}
    if key:
        record["doc"] = json.dumps({"primaryKeys": list(key)})
    return json.dumps(record)


def record_name(topic: str, what: str) -> str:
    """The default name of a topic's record."""
    words = re.sub(r"[^A-Za-z0-9_.]", "_", topic)
    parts = [part if _NAME.fullmatch(part) else f"_{part}" for part in words.split(".") if part]
    return f"{'.'.join(parts) or '_'}_{what}"


def differences(old: AvroSchema, new: AvroSchema) -> list[str]:
    """The fields that differ between two records, and how."""
    before, after = _types(old), _types(new)
    gone = [f"`{name}` is gone (it was {kind})" for name, kind in before.items() if name not in after]
    added = [f"`{name}` is new ({kind})" for name, kind in after.items() if name not in before]
    changed = [f"`{name}` was {before[name]} and is {kind}" for name, kind in after.items() if name in before and before[name] != kind]
    return [*changed, *gone, *added]


def _types(schema: AvroSchema) -> dict[str, str]:
    return {each["name"]: _type_text(each["type"]) for each in (schema.record or {"fields": []})["fields"]}


def _type_text(kind: Any) -> str:
    if isinstance(kind, list):
        return " or ".join(map(_type_text, kind))
    if isinstance(kind, Mapping):
        return str(kind.get("logicalType") or kind["type"])
    return str(kind)


def _fields(columns: Any, path: str) -> list[dict[str, Any]]:
    return [
        {"name": _check_name(each.name), "type": ["null", _type(each.type, f"{path}_{each.name}")], "default": None} for each in columns
    ]


def _type(kind: pa.DataType, path: str) -> Any:
    if pa.types.is_struct(kind):
        return {"type": "record", "name": path, "fields": _fields(kind, path)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": ["null", _type(kind.value_type, f"{path}_item")]}
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise ValueError(f"a map with keys of type {kind.key_type}: Avro's keys are texts")
        return {"type": "map", "values": ["null", _type(kind.item_type, f"{path}_item")]}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    found = next((avro for matches, avro in _PLAIN if matches(kind)), None)
    if found is None:
        raise ValueError(f"Avro has no {kind}")
    return found


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"`{name}` is not a valid name in Avro: use letters, digits and underscores")
    return name
