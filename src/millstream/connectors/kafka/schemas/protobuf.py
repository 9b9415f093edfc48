"""Protobuf messages become columns, and columns messages, in Python's workers, whole Arrow arrays at a time.

Behind the id stand the indexes of the message within its file, as variable-length numbers with their count in front; a lone zero means
the first message. The reader's schema decodes messages of every id. A message that stands elsewhere in its file is another one: bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.kafka.reading.parsing import Part
from millstream.formats import protobuf, protobufwriting

if TYPE_CHECKING:
    from pyspark.sql import Column

WHOLE = "_millstream_whole"


@dataclass(frozen=True, slots=True)
class ProtobufPart(Part):
    """A value in Protobuf."""

    descriptors: bytes = b""
    message: str = ""
    headed: bool = True
    """Whether an id and indexes stand in front of each message."""

    def parsed(self) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.pandas.types import from_arrow_type

        held = protobuf.columns(self.descriptors, self.message)
        kind = pa.struct([*held, pa.field(WHOLE, pa.bool_())])
        return on_arrays(_decoding(self.descriptors, self.message, kind, self.headed), from_arrow_type(kind), F.col(self.what))

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
    """A function of Arrow arrays, applied to a column."""
    from pyspark.sql import functions

    applied: Column = functions.arrow_udf(function, returns)(column)  # type: ignore[attr-defined]  # it is there, and has no type
    return applied


def encoding(descriptors: bytes, id_: int) -> Callable[[pa.Array], pa.Array]:
    """Rows to messages of the file's first type."""

    def encode(rows: pa.Array) -> pa.Array:
        make = protobufwriting.encoder(descriptors)
        header = b"\x00" + id_.to_bytes(4, "big") + b"\x00"
        return pa.array([header + make(row) for row in _numbered(rows).to_pylist()], pa.binary())

    return encode


def _decoding(descriptors: bytes, name: str, kind: pa.DataType, headed: bool) -> Callable[[pa.Array], pa.Array]:
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
    """The message's place in its file, and where the message begins."""
    numbers = _varints(data, start)
    count, start = next(numbers)
    found = []
    for _ in range(count):
        index, start = next(numbers)
        found.append(index)
    return tuple(found) or (0,), start


def _varints(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Zigzag numbers, one after the other, each with the place behind it."""
    while True:
        number = shift = 0
        while True:
            byte = data[start]
            number, shift, start = number | (byte & 0x7F) << shift, shift + 7, start + 1
            if byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1), start


def _numbered(rows: pa.Array) -> pa.Array:
    """Timestamps as microseconds, at any depth: Python's own would cost twice the time."""
    return rows.cast(_plain(rows.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return pa.map_(kind.key_type, _plain(kind.item_type)) if pa.types.is_map(kind) else kind
