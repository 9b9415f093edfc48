"""Converts compiled Protobuf schemas to columns, and to a function that decodes messages on workers.

Protobuf uses field numbers: the reader's schema decodes messages of any writer and skips unknown fields.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

Cell = Callable[[Any], Any]
_SCALARS = {
    **dict.fromkeys((5, 15, 17), pa.int32()),  # int32, sfixed32, sint32
    **dict.fromkeys((3, 16, 18, 13, 7), pa.int64()),  # int64, sfixed64, sint64, and the unsigned ones of 32 bits
    **dict.fromkeys((4, 6), pa.decimal128(20, 0)),  # uint64, fixed64
    1: pa.float64(),
    2: pa.float32(),
    8: pa.bool_(),
    9: pa.string(),
    12: pa.binary(),
    14: pa.string(),  # an enum by its name
}
_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = {
    f"google.protobuf.{kind}Value" for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


def columns(descriptors: bytes, name: str = "") -> pa.Schema:
    """The fields of a message as columns; ValueError for types that columns do not have."""
    return pa.schema(_fields(message_of(descriptors, name), ()))


def decoder(descriptors: bytes, name: str = "") -> Callable[[bytes], dict[str, Any] | None]:
    """A function from a message's bytes to a row; None for invalid bytes."""
    from google.protobuf.message import DecodeError, Message
    from google.protobuf.message_factory import GetMessageClass

    kind = message_of(descriptors, name)
    make, row = GetMessageClass(kind), _row(kind)

    def decode(data: bytes) -> dict[str, Any] | None:
        message: Message = make()
        try:
            message.ParseFromString(data)
        except DecodeError:
            return None
        found: dict[str, Any] = row(message)
        return found

    return decode


@lru_cache(maxsize=16)
def message_of(descriptors: bytes, name: str = "") -> Any:
    """The descriptor of a message, by its full name; by default the first one of the file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool

    pool, files = DescriptorPool(), FileDescriptorSet.FromString(descriptors).file
    for file in files:
        pool.Add(file)
    main = pool.FindFileByName(files[-1].name)
    if name:
        try:
            return pool.FindMessageTypeByName(name)
        except KeyError:
            raise ValueError(f"the schema has no message `{name}`") from None
    if not files[-1].message_type:
        raise ValueError("the schema holds no message")
    return main.message_types_by_name[files[-1].message_type[0].name]


def path_of(message: Any) -> tuple[int, ...]:
    """The position of a message in its file, as indexes from the outside in."""
    siblings = message.containing_type.nested_types if message.containing_type else message.file.message_types_by_name.values()
    own = [each.full_name for each in siblings].index(message.full_name)
    return (*(path_of(message.containing_type) if message.containing_type else ()), own)


def _fields(message: Any, above: tuple[str, ...]) -> list[pa.Field]:
    if message.full_name in above:
        raise ValueError(f"`{message.full_name}` contains itself, which columns cannot")
    return [pa.field(each.name, _arrow(each, (*above, message.full_name))) for each in message.fields]


def _arrow(field: Any, above: tuple[str, ...]) -> pa.DataType:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        key, value = inner.fields
        return pa.map_(_SCALARS[key.type], _arrow(value, above))
    if inner is None:
        kind = _SCALARS[field.type]
    elif inner.full_name == _TIMESTAMP:
        kind = pa.timestamp("us", "UTC")
    elif inner.full_name in _WRAPPERS:
        kind = _SCALARS[inner.fields[0].type]
    else:
        kind = pa.struct(_fields(inner, above))
    return pa.list_(kind) if field.is_repeated else kind


def _row(message: Any) -> Cell:
    cells = [(each.name, _cell(each)) for each in message.fields]
    return lambda value: {name: cell(value) for name, cell in cells}


def _cell(field: Any) -> Cell:
    """A function that reads a field of a message."""
    name, inner = field.name, field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        plain = _plain(inner.fields[1])
        return lambda message: [(key, plain(value)) for key, value in getattr(message, name).items()]
    plain = _plain(field)
    if field.is_repeated:
        return lambda message: [plain(value) for value in getattr(message, name)]
    if field.has_presence:
        return lambda message: plain(getattr(message, name)) if message.HasField(name) else None
    return lambda message: plain(getattr(message, name))


def _plain(field: Any) -> Cell:
    inner = field.message_type
    if field.enum_type is not None:
        names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
        return lambda value: names.get(value, str(value))
    if inner is None:
        return lambda value: value
    if inner.full_name == _TIMESTAMP:
        return lambda value: value.seconds * 1_000_000 + value.nanos // 1000
    return (lambda value: value.value) if inner.full_name in _WRAPPERS else _row(inner)
