"""Writes columns as a Protobuf schema, and rows as its messages.

Readers use field numbers, so a column name keeps its number: numbers of an earlier version are reused, and new columns get new ones. Every
field is `optional`, so that null and absent differ. Decimals and dates, which Protobuf does not have, are texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from millstream.formats.protobuf import message_of

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PLAIN: tuple[tuple[Any, str], ...] = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_integer, "int32"),
    (pa.types.is_float32, "float"),
    (pa.types.is_floating, "double"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_timestamp, "google.protobuf.Timestamp"),
)


def schema_of(columns: pa.Schema, name: str, before: bytes = b"") -> str:
    """The `.proto` text of a message with these columns; `before` is an earlier version, whose numbers are reused."""
    package, _, message = name.rpartition(".")
    earlier = message_of(before) if before else None
    lines = ['syntax = "proto3";', *([f"package {package};"] if package else []), 'import "google/protobuf/timestamp.proto";', ""]
    return "\n".join([*lines, *_message(message, columns, earlier, ""), ""])


def encoder(descriptors: bytes) -> Callable[[Any], bytes]:
    """A function from a row to a message's bytes."""
    from google.protobuf.message_factory import GetMessageClass

    make = GetMessageClass(message_of(descriptors))

    def encode(row: dict[str, Any]) -> bytes:
        message = make()
        _fill(message, row)
        data: bytes = message.SerializeToString()
        return data

    return encode


def _message(name: str, fields: Any, earlier: Any, indent: str) -> list[str]:
    taken = {each.name: each.number for each in earlier.fields} if earlier is not None else {}
    inner = {each.name: each.message_type for each in earlier.fields} if earlier is not None else {}
    lines, next_ = [f"{indent}message {name} {{"], max(taken.values(), default=0) + 1
    for field in fields:
        number = taken.get(field.name) or next_
        next_ += number == next_
        lines += _field(field, number, inner.get(field.name), f"{indent}  ")
    return [*lines, f"{indent}}}"]


def _field(field: pa.Field, number: int, earlier: Any, indent: str) -> list[str]:
    if not _NAME.fullmatch(field.name):
        raise ValueError(f"`{field.name}` is not a valid name in Protobuf: use letters, digits and underscores, a letter first")
    kind, word = field.type, "optional "
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind, word = kind.value_type, "repeated "
    if pa.types.is_map(kind):
        key = _plain(kind.key_type)
        if pa.types.is_nested(kind.item_type) or key not in {"string", "int32", "int64", "bool"} or word == "repeated ":
            raise ValueError(f"`{field.name}` is a map that Protobuf does not support: {kind}")
        return [f"{indent}map<{key}, {_plain(kind.item_type)}> {field.name} = {number};"]
    if pa.types.is_list(kind):
        raise ValueError(f"`{field.name}` is a list of lists, which Protobuf does not support")
    if not pa.types.is_struct(kind):
        return [f"{indent}{word}{_plain(kind)} {field.name} = {number};"]
    name = f"{field.name[:1].upper()}{field.name[1:]}"
    return [*_message(name, kind, earlier, indent), f"{indent}{word}{name} {field.name} = {number};"]


def _plain(kind: pa.DataType) -> str:
    return next((name for matches, name in _PLAIN if matches(kind)), "string")


def _fill(message: Any, row: dict[str, Any]) -> None:
    for field in message.DESCRIPTOR.fields:
        value = row.get(field.name)
        if value is None:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            target = getattr(message, field.name)
            for key, each in dict(value).items():
                target[key] = _scalar(field.message_type.fields[1], each)
        elif field.is_repeated:
            for each in value:
                _append(getattr(message, field.name), field, each)
        elif field.message_type is not None:
            _set(getattr(message, field.name), value)
        else:
            setattr(message, field.name, _scalar(field, value))


def _append(target: Any, field: Any, value: Any) -> None:
    if field.message_type is not None:
        _set(target.add(), value)
    else:
        target.append(_scalar(field, value))


def _set(message: Any, value: Any) -> None:
    message.SetInParent()
    if message.DESCRIPTOR.full_name == "google.protobuf.Timestamp":
        message.seconds, micros = divmod(int(value), 1_000_000)
        message.nanos = micros * 1000
    else:
        _fill(message, value)


def _scalar(field: Any, value: Any) -> Any:
    return str(value) if field.type == 9 else value
