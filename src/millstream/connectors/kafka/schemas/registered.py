"""Parts of a source's messages whose schema is in the registry: found at the first start, pinned, and kept up with.

Between start and start the reader's schema stays; what is learnt is how others write. `learn` is the driver's answer to a message with
an id that was not known when the query started.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.kafka.reading.parsing import Part
from millstream.connectors.kafka.schemas.avro import AvroPart, enveloped, refusals, row_type, unseen
from millstream.connectors.kafka.schemas.library import Known, Library
from millstream.connectors.kafka.schemas.protobuf import ProtobufPart
from millstream.connectors.kafka.schemas.registry import AGAIN_SECONDS, REGISTERED, SECONDS, What
from millstream.errors import Diagnostic, RunError, TransientError, nearest
from millstream.formats import avro, jsonschema, protobuf
from millstream.plan import types
from millstream.plan.components import NodeContext

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from millstream.connectors.kafka.source import KafkaSource

_STRANGERS = 100
"""So many ids may be nobody's: each of them costs a start."""
_KINDS = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}


@dataclass(frozen=True, slots=True)
class JsonSchemaPart(Part):
    """A value in JSON behind the id of its schema; the schema says which columns there are."""

    def text(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr("CASE WHEN substring(value, 1, 1) = X'00' AND octet_length(value) >= 5 THEN substring(value, 6) END").cast("string")


def known_columns(source: KafkaSource, topics: Sequence[str], what: What, context: NodeContext, seconds: float = 0) -> pa.Schema:
    """The columns of a part, as pinned or as the registry has them now. Nothing is kept."""
    library = _library(source, topics, what, context, seconds)
    return _columns(source, what, library.pinned() or _first(library))


def registered_part(source: KafkaSource, topics: Sequence[str], what: What, spark: SparkSession, context: NodeContext) -> Part:
    """How a part is decoded from here on."""
    library = _library(source, topics, what, context)
    if library.pinned() is None:
        _first(library)
    reader = library.pin(lambda known: _fits(_columns(source, what, known), context.schema))
    format_ = source.format if what == "value" else source.key_format
    columns = _declared(source, what, _columns(source, what, reader), context.name)
    if format_ == "json_schema":
        return JsonSchemaPart("json", columns, source.options, what, strict=not context.isolate)
    if format_ == "protobuf":
        return ProtobufPart("protobuf", columns, {}, what, descriptors=b64decode(reader.text), message=source.record or "")
    library.refresh()
    schema = _reader(source, what, reader)
    writers = library.known()
    subject = library.subjects[0]
    refused = refusals(spark, schema, writers, subject)
    lost: set[int] = context.memory.get(f"unknown {what}", set())
    refused |= {id_: f"schema {id_} is not in the registry (subject `{subject}`)" for id_ in lost}
    kept = {id_: text for id_, text in writers.items() if id_ not in refused}
    envelope = what == "value" and source.envelope is not None
    return AvroPart("avro", columns, {}, what, not context.isolate, envelope, context.name, schema, kept, refused)


def learn(source: KafkaSource, topics: Sequence[str], text: str, context: NodeContext) -> bool:
    """Whether the failure was a new id, about which more is known now."""
    found = unseen(text, context.name)
    if found is None:
        return False
    what: What = "key" if found[0] == "key" else "value"
    if _library(source, topics, what, context).look_up(found[1]):
        return True
    lost: set[int] = context.memory.setdefault(f"unknown {what}", set())
    if len(lost) >= _STRANGERS:
        message = f"`{context.name}` has met more than {_STRANGERS} ids that the schema registry does not know"
        raise RunError(Diagnostic("MS102", message, help="are the messages written with another registry, or in another format?"))
    lost.add(found[1])
    return True


def key_of(source: KafkaSource, context: NodeContext) -> tuple[str, ...]:
    """The primary key that the reader's schema names, of columns that are there."""
    if source.format != "avro":
        return ()
    known = _library(source, (), "value", context).pinned()
    if known is None:
        return ()
    reader = _reader(source, "value", known)
    schema = row_type(reader) if source.envelope else reader
    return schema.primary_key() or reader.primary_key()


def _library(source: KafkaSource, topics: Sequence[str], what: What, context: NodeContext, seconds: float = 0) -> Library:
    storage = context.storage.child(f"registry/{what}")
    seconds = seconds or (AGAIN_SECONDS if storage.exists("reader.json") else SECONDS)
    return Library(source.registry(seconds), storage, source.subjects(topics, what))


def _first(library: Library) -> Known:
    """A registry that has never answered has a wrong address: that is no temporary failure."""
    try:
        return library.latest()
    except TransientError as error:
        raise RunError(error.diagnostics) from None


def _reader(source: KafkaSource, what: What, known: Known) -> avro.AvroSchema:
    schema = avro.parse(known.text)
    return enveloped(schema) if what == "value" and source.envelope else schema


def _columns(source: KafkaSource, what: What, known: Known) -> pa.Schema:
    format_ = source.format if what == "value" else source.key_format
    if known.kind != _KINDS[format_]:
        message = f"`format: {format_}` does not fit: the registry's schema {known.id} is of type {known.kind}"
        raise RunError(Diagnostic("MS105", message))
    try:
        if format_ == "json_schema":
            return jsonschema.columns(known.text)
        if format_ == "protobuf":
            return protobuf.columns(b64decode(known.text), source.record or "")
        schema = _reader(source, what, known)
        alone = next(iter(source.key or {"key": ""})) if what == "key" else "value"
        return (row_type(schema) if what == "value" and source.envelope else schema).columns(alone)
    except ValueError as error:
        raise RunError(Diagnostic("MS105", f"the registry's schema {known.id} makes no columns: {error}")) from None


def _declared(source: KafkaSource, what: What, held: pa.Schema, node: str) -> pa.Schema:
    """The columns that the user wants, which must be there; all when nothing is said."""
    wanted = source.columns if what == "value" else source.key
    for name in wanted or {}:
        if name not in held.names:
            message = f"`{node}` wants column `{name}`, and the registry's schema has none of that name"
            raise RunError(Diagnostic("MS105", message, help=nearest(name, held.names)))
    return types.schema(wanted) if wanted else held


def _fits(columns: pa.Schema, wanted: pa.Schema | None) -> bool:
    return wanted is None or all(
        each.name in wanted.names and types.name_of(wanted.field(each.name).type) == types.name_of(each.type) for each in columns
    )


def is_registered(source: KafkaSource, what: What) -> bool:
    if what == "value" and source.schema_file is not None:
        return False
    return (source.format if what == "value" else source.key_format) in REGISTERED
