"""Protobuf without a registry: the schema is a file next to the pipeline, and messages have no id."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from millstream.connectors.kafka.schemas.protobuf import ProtobufPart
from millstream.formats import protobuf, protoc


@lru_cache(maxsize=16)
def descriptors(file: Path) -> bytes:
    """The file, compiled if necessary; ValueError with a sentence when it is not a schema."""
    try:
        if file.suffix != ".proto":
            return file.read_bytes()
        return protoc.compile_schema(
            file.read_text(encoding="utf-8"), {each.name: each.read_text(encoding="utf-8") for each in _beside(file)}
        )
    except OSError as error:
        raise ValueError(f"`{file}` cannot be read: {(error.strerror or str(error)).lower()}") from None
    except ImportError:
        raise ValueError(
            "a `.proto` text needs the Protobuf compiler: `pip install 'millstream[protobuf]'`, or compile it to a `.desc`"
        ) from None


def file_columns(file: Path, message: str) -> pa.Schema:
    """The columns of a message type of the file; ValueError with a sentence when there are none."""
    from google.protobuf.message import DecodeError

    try:
        return protobuf.columns(descriptors(file), message)
    except (DecodeError, IndexError):
        raise ValueError(f"`{file}` is not a compiled schema") from None


def file_part(file: Path, message: str, columns: pa.Schema) -> ProtobufPart:
    return ProtobufPart("protobuf", columns, {}, "value", descriptors=descriptors(file), message=message, headed=False)


def _beside(file: Path) -> list[Path]:
    """The files that it may import."""
    return [each for each in sorted(file.parent.glob("*.proto")) if each != file]
