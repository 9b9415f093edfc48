"""Converts JSON Schema to columns, and columns to JSON Schema.

JSON Schema allows more than a column: a property with several types, or of any type, becomes text that contains the original JSON.
References within the document are followed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_TEXT_FORMATS = {"date-time": pa.timestamp("us", "UTC"), "date": pa.date32()}
_CONNECT = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32()}
_NUMBERS = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
_WRITTEN: tuple[tuple[Any, dict[str, Any]], ...] = (
    (pa.types.is_boolean, {"type": "boolean"}),
    (pa.types.is_integer, {"type": "integer"}),
    (pa.types.is_floating, {"type": "number"}),
    (pa.types.is_decimal, {"type": "number"}),
    (pa.types.is_date, {"type": "string", "format": "date"}),
    (pa.types.is_timestamp, {"type": "string", "format": "date-time"}),
    (pa.types.is_binary, {"type": "string", "contentEncoding": "base64"}),
)


def columns(text: str) -> pa.Schema:
    """The properties of an object; ValueError with a sentence when the schema describes none."""
    try:
        root = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the schema is not JSON: {error}") from None
    kind = _arrow(root, root, ())
    if not pa.types.is_struct(kind) or not kind.num_fields:
        raise ValueError("the schema describes no object with properties")
    return pa.schema(list(kind))


def schema_text(schema: pa.Schema, title: str) -> str:
    """A JSON Schema of rows with these columns, each of which may be null or absent."""
    body = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, "type": "object"}
    return json.dumps({**body, "properties": {each.name: _optional(each.type) for each in schema}})


def _arrow(node: Any, root: Any, above: tuple[str, ...]) -> pa.DataType:
    if not isinstance(node, Mapping):
        return pa.string()
    reference = node.get("$ref")
    if reference:
        if reference in above:
            raise ValueError(f"`{reference}` contains itself, which columns cannot")
        return _arrow(_target(reference, root), root, (*above, reference))
    several = [branch for word in ("oneOf", "anyOf") for branch in node.get(word, ()) if branch != {"type": "null"}]
    if several:
        return _arrow(several[0], root, above) if len(several) == 1 else pa.string()
    kinds = node.get("type")
    left = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    return _arrow_of_type(left[0], node, root, above) if len(left) == 1 else pa.string()


def _arrow_of_type(kind: Any, node: Mapping[str, Any], root: Any, above: tuple[str, ...]) -> pa.DataType:
    if kind == "object" and node.get("properties"):
        return pa.struct([pa.field(name, _arrow(each, root, above)) for name, each in node["properties"].items()])
    if kind == "object" and isinstance(node.get("additionalProperties"), Mapping):
        return pa.map_(pa.string(), _arrow(node["additionalProperties"], root, above))
    if kind == "array" and isinstance(node.get("items"), Mapping):
        return pa.list_(_arrow(node["items"], root, above))
    if kind in _NUMBERS:
        connect: pa.DataType = _CONNECT.get(str(node.get("connect.type")), _NUMBERS[kind])
        return connect
    return _TEXT_FORMATS.get(str(node.get("format")), pa.string())


def _target(reference: str, root: Any) -> Any:
    found = root
    for word in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(word) if word and isinstance(found, Mapping) else found
    if not reference.startswith("#") or found is None:
        raise ValueError(f"the schema refers to `{reference}`, which is not in it")
    return found


def _optional(kind: pa.DataType) -> dict[str, Any]:
    found = _schema(kind)
    return {**found, "type": ["null", found["type"]]}


def _schema(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_struct(kind):
        return {"type": "object", "properties": {each.name: _optional(each.type) for each in kind}}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _optional(kind.item_type)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": _optional(kind.value_type)}
    return next((dict(found) for matches, found in _WRITTEN if matches(kind)), {"type": "string"})
