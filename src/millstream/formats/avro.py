"""Avro schemas as plain data: full names, collected definitions, and columns in Arrow's types.

The Arrow types are those of Spark's own reader, which decodes the messages: a union of several types becomes a struct, enums are texts,
times of day are numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.formats.avro_names import expand_names, inline_names

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A type, and the named types that it uses."""

    type: Any
    names: Mapping[str, dict[str, Any]]

    @property
    def record(self) -> dict[str, Any] | None:
        """The definition, when the whole is a record."""
        found = self.names.get(self.type) if isinstance(self.type, str) else None
        return found if found is not None and found["type"] in {"record", "error"} else None

    def text(self) -> str:
        """The schema as one JSON text: each name is defined at its first use."""
        return json.dumps(inline_names(self.type, self.names, set()))

    def columns(self, alone: str = "value") -> pa.Schema:
        """A record's fields as columns; any other type is one column, called `alone`."""
        record = self.record
        if record is None:
            return pa.schema([pa.field(alone, arrow(self.type, self.names))])
        return pa.schema([pa.field(each["name"], arrow(each["type"], self.names, (self.type,))) for each in record["fields"]])

    def field(self, name: str) -> Any:
        """The type of a record's field; None when there is none."""
        fields = self.record["fields"] if self.record else []
        return next((each["type"] for each in fields if each["name"] == name), None)

    def primary_key(self) -> tuple[str, ...]:
        """The columns that the record's documentation names: `{"primaryKeys": ["id"]}` in `doc` or `connect.doc`."""
        record = self.record or {}
        for doc in (record.get("doc"), record.get("connect.doc")):
            try:
                keys = json.loads(doc or "")["primaryKeys"]
            except (ValueError, TypeError, KeyError):
                continue
            return tuple(map(str, [keys] if isinstance(keys, str) else keys))
        return ()


def parse(text: str, others: Iterable[AvroSchema] = ()) -> AvroSchema:
    """A schema from its text; `others` define names that it uses. ValueError with a sentence when it is invalid."""
    names: dict[str, dict[str, Any]] = {name: each for other in others for name, each in other.names.items()}
    try:
        raw = json.loads(text)
    except ValueError as error:
        if text.strip() not in _PLAIN:
            raise ValueError(f"the schema is not JSON: {error}") from None
        raw = text.strip()
    return AvroSchema(expand_names(raw, "", names), names)


def arrow(kind: Any, names: Mapping[str, dict[str, Any]], above: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type that Spark's reader returns; ValueError for types that it cannot read."""
    if isinstance(kind, list):
        return _union(kind, names, above)
    if isinstance(kind, str):
        return _PLAIN[kind] if kind in _PLAIN else _named_type(kind, names, above)
    base = kind["type"]
    if base == "array":
        return pa.list_(arrow(kind["items"], names, above))
    if base == "map":
        return pa.map_(pa.string(), arrow(kind["values"], names, above))
    logical = kind.get("logicalType")
    if logical == "decimal" and base == "bytes":
        return _decimal(kind)
    return _LOGICAL.get((base, logical)) or arrow(base, names, above)


def _named_type(name: str, names: Mapping[str, dict[str, Any]], above: tuple[str, ...]) -> pa.DataType:
    if name in above:
        raise ValueError(f"`{name}` contains itself, which columns cannot")
    definition = names[name]
    if definition["type"] == "enum":
        return pa.string()
    if definition["type"] == "fixed":
        return _decimal(definition) if definition.get("logicalType") == "decimal" else pa.binary()
    fields = [pa.field(each["name"], arrow(each["type"], names, (*above, name))) for each in definition["fields"]]
    return pa.struct(fields)


def _union(branches: list[Any], names: Mapping[str, dict[str, Any]], above: tuple[str, ...]) -> pa.DataType:
    """As Spark does: null is not a branch, numbers widen, and the rest becomes a struct with one member for each."""
    left = [branch for branch in branches if branch != "null"]
    if not left:
        return pa.null()
    if len(left) == 1:
        return arrow(left[0], names, above)
    if all(isinstance(branch, str) for branch in left) and set(left) in ({"int", "long"}, {"float", "double"}):
        return pa.int64() if "long" in left else pa.float64()
    return pa.struct([pa.field(f"member{index}", arrow(branch, names, above)) for index, branch in enumerate(left)])


def _decimal(kind: Mapping[str, Any]) -> pa.DataType:
    precision = int(kind["precision"])
    if precision > 38:
        raise ValueError(f"a decimal of {precision} digits is too long: 38 is the most")
    return pa.decimal128(precision, int(kind.get("scale", 0)))
