"""Decodes and encodes Protobuf messages in Python's workers, whole Arrow arrays at a time.

After the id come the indexes of the message type within its file, as variable-length numbers preceded by their count; a single zero means
the first type. The reader's schema decodes messages of every id. A message of another type is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.kafka.parts import MessagePart
from millstream.formats import protobuf, protobuf_writer

if TYPE_CHECKING:
    from pyspark.sql import Column

WHOLE = "_millstream_whole"


@dataclass(frozen=True, slots=True)
class ProtobufPart(MessagePart):
    """A value in Protobuf."""

    descriptors: bytes = b""
    message: str = ""
    headed: bool = True
    """Whether each message is preceded by an id and indexes."""

    def parse(self) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_type

        held = protobuf.columns(self.descriptors, self.message)
        kind = pa.struct([*held, pa.field(WHOLE, pa.bool_())])
        return on_arrays(_make_decoder(self.descriptors, self.message, kind, self.headed), from_arrow_type(kind), F.col(self.what))

    def columns(self) -> list[Column]:
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_type

        held = protobuf.columns(self.descriptors, self.message)
        cells = [F.col(self.column).getField(each.name) for each in self.schema]
        kinds = [None if held.field(each.name).type.equals(each.type) else from_arrow_type(each.type) for each in self.schema]
        return [cell.cast(kind) if kind is not None else cell for cell, kind in zip(cells, kinds, strict=True)]

    def error(self) -> Column:
        from pyspark.sql import functions as F

        name = protobuf.message_of(self.descriptors, self.message).full_name
        found = F.when(F.col(self.column).getField(WHOLE).isNotNull(), F.lit(None).cast("string"))
        found = found.when(F.col(self.what).isNull(), f"the message has no {self.what}")
        behind = " behind a zero byte and the id of a schema" if self.headed else ""
        return found.otherwise(f"the {self.what} is no Protobuf message `{name}`{behind}")


def on_arrays(function: Callable[[pa.Array], pa.Array], returns: Any, column: Column) -> Column:
    """Apply a function of Arrow arrays to a column."""
    from pyspark.sql import functions

    applied: Column = functions.arrow_udf(function, returns)(column)  # type: ignore[attr-defined]  # it exists, but has no stub
    return applied


def make_encoder(descriptors: bytes, id_: int) -> Callable[[pa.Array], pa.Array]:
    """A function from rows to messages of the file's first type."""

    def encode(rows: pa.Array) -> pa.Array:
        make = protobuf_writer.encoder(descriptors)
        header = b"\x00" + id_.to_bytes(4, "big") + b"\x00"
        return pa.array([header + make(row) for row in _with_micros(rows).to_pylist()], pa.binary())

    return encode


def _make_decoder(descriptors: bytes, name: str, kind: pa.DataType, headed: bool) -> Callable[[pa.Array], pa.Array]:
    def decode(values: pa.Array) -> pa.Array:
        make, path = protobuf.decoder(descriptors, name), protobuf.path_of(protobuf.message_of(descriptors, name))
        bare = [make(value) if value is not None else None for value in values.to_pylist()] if not headed else None
        rows = bare if bare is not None else [_one(value, path, make) for value in values.to_pylist()]
        return pa.array([{**row, WHOLE: True} if row is not None else None for row in rows], kind)

    return decode


def _one(value: bytes | None, path: tuple[int, ...], make: Callable[[bytes], dict[str, Any] | None]) -> dict[str, Any] | None:
    if value is None or len(value) < 6 or value[0]:
        return None
    try:
        indexes, start = _indexes(value, 5)
    except IndexError:
        return None
    return make(value[start:]) if indexes == path else None


def _indexes(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """The message type's position in its file, and where the message begins."""
    numbers = _varints(data, start)
    count, start = next(numbers)
    found = []
    for _ in range(count):
        index, start = next(numbers)
        found.append(index)
    return tuple(found) or (0,), start


def _varints(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Zigzag numbers, each with the position after it."""
    while True:
        number = shift = 0
        while True:
            byte = data[start]
            number, shift, start = number | (byte & 0x7F) << shift, shift + 7, start + 1
            if byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1), start


def _with_micros(rows: pa.Array) -> pa.Array:
    """Timestamps as microseconds, at any depth: Python's datetimes would take twice the time."""
    return rows.cast(_plain(rows.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return pa.map_(kind.key_type, _plain(kind.item_type)) if pa.types.is_map(kind) else kind
