"""Avro schemas as plain data: names made whole, definitions collected, columns in Arrow's types.

A schema is read once into a form where every named type stands as its full name and its definition in a table. So a part of it can be
taken out and written again complete, and schemas that refer to types of other subjects become one text. The Arrow types are those that
Spark's own reader produces, which is what decodes the messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_NAMED = {"record", "error", "enum", "fixed"}
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
    """A type, and the named types that it is made of."""

    type: Any
    names: Mapping[str, dict[str, Any]]

    @property
    def record(self) -> dict[str, Any] | None:
        """The definition, when the whole is a record."""
        found = self.names.get(self.type) if isinstance(self.type, str) else None
        return found if found is not None and found["type"] in {"record", "error"} else None

    def text(self) -> str:
        """The schema as one JSON text: each name is defined where it comes first."""
        return json.dumps(_written(self.type, self.names, set()))

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
    """A schema from its text; `others` define names that it uses. ValueError with a sentence when it is none."""
    names: dict[str, dict[str, Any]] = {name: each for other in others for name, each in other.names.items()}
    try:
        raw = json.loads(text)
    except ValueError as error:
        if text.strip() not in _PLAIN:
            raise ValueError(f"the schema is not JSON: {error}") from None
        raw = text.strip()
    return AvroSchema(_whole(raw, "", names), names)


def arrow(kind: Any, names: Mapping[str, dict[str, Any]], above: tuple[str, ...] = ()) -> pa.DataType:
    """The Arrow type of what Spark's reader makes of it; ValueError for what it cannot read."""
    if isinstance(kind, list):
        return _union(kind, names, above)
    if isinstance(kind, str):
        return _PLAIN[kind] if kind in _PLAIN else _named(kind, names, above)
    base = kind["type"]
    if base == "array":
        return pa.list_(arrow(kind["items"], names, above))
    if base == "map":
        return pa.map_(pa.string(), arrow(kind["values"], names, above))
    logical = kind.get("logicalType")
    if logical == "decimal" and base == "bytes":
        return _decimal(kind)
    return _LOGICAL.get((base, logical)) or arrow(base, names, above)


def _named(name: str, names: Mapping[str, dict[str, Any]], above: tuple[str, ...]) -> pa.DataType:
    if name in above:
        raise ValueError(f"`{name}` holds itself, and columns have an end")
    definition = names[name]
    if definition["type"] == "enum":
        return pa.string()
    if definition["type"] == "fixed":
        return _decimal(definition) if definition.get("logicalType") == "decimal" else pa.binary()
    fields = [pa.field(each["name"], arrow(each["type"], names, (*above, name))) for each in definition["fields"]]
    return pa.struct(fields)


def _union(branches: list[Any], names: Mapping[str, dict[str, Any]], above: tuple[str, ...]) -> pa.DataType:
    """As Spark does: null is no branch, numbers widen, and what is left becomes a structure with one member for each."""
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


def _whole(kind: Any, namespace: str, names: dict[str, dict[str, Any]]) -> Any:
    """The type with full names, its definitions put into the table."""
    if isinstance(kind, list):
        return [_whole(branch, namespace, names) for branch in kind]
    if isinstance(kind, str):
        return kind if kind in _PLAIN else _known(kind, namespace, names)
    if not isinstance(kind, dict) or "type" not in kind:
        raise ValueError(f"`{json.dumps(kind)[:80]}` is not an Avro type")
    base = kind["type"]
    if base in _NAMED:
        return _definition(kind, namespace, names)
    inner = {"array": "items", "map": "values"}.get(base) if isinstance(base, str) else None
    if inner:
        return {**kind, inner: _whole(kind[inner], namespace, names)}
    if base in _PLAIN if isinstance(base, str) else False:
        return kind if kind.get("logicalType") else base
    return _whole(base, namespace, names)


def _definition(kind: dict[str, Any], namespace: str, names: dict[str, dict[str, Any]]) -> str:
    given, own = str(kind["name"]), kind.get("namespace", namespace)
    full = given if "." in given or not own else f"{own}.{given}"
    inside = full.rpartition(".")[0]
    definition = names[full] = {name: value for name, value in kind.items() if name != "namespace"} | {"name": full}
    if "fields" in kind:
        definition["fields"] = [{**each, "type": _whole(each["type"], inside, names)} for each in kind["fields"]]
    return full


def _known(name: str, namespace: str, names: Mapping[str, dict[str, Any]]) -> str:
    for full in ([] if "." in name or not namespace else [f"{namespace}.{name}"]) + [name]:
        if full in names:
            return full
    raise ValueError(f"the schema uses `{name}`, and does not say what that is")


def _written(kind: Any, names: Mapping[str, dict[str, Any]], said: set[str]) -> Any:
    if isinstance(kind, list):
        return [_written(branch, names, said) for branch in kind]
    if isinstance(kind, str):
        if kind in _PLAIN or kind in said:
            return kind
        said.add(kind)
        definition = dict(names[kind]) if "." in kind else {**names[kind], "namespace": ""}
        if "fields" in definition:
            definition["fields"] = [{**each, "type": _written(each["type"], names, said)} for each in definition["fields"]]
        return definition
    for inner in ("items", "values"):
        if inner in kind:
            return {**kind, inner: _written(kind[inner], names, said)}
    return kind
