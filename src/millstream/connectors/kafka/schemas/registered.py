"""Parts of a source's messages whose schema is in the registry: found at the first start, pinned, and updated.

Between starts the reader's schema stays the same; new writers' schemas are added. `learn` handles a message whose id was unknown when the
query started.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.kafka.parts import MessagePart
from millstream.connectors.kafka.registry import AGAIN_SECONDS, REGISTERED, SECONDS, What
from millstream.connectors.kafka.schemas.avro import AvroPart, refusals, row_type, trim_envelope, unseen
from millstream.connectors.kafka.schemas.library import Library, StoredSchema
from millstream.connectors.kafka.schemas.protobuf import ProtobufPart
from millstream.errors import Diagnostic, RunError, TemporaryError, nearest
from millstream.formats import avro, json_schema, protobuf
from millstream.plan import types
from millstream.plan.components import NodeContext

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from millstream.connectors.kafka.source import KafkaSource

_MOST_UNKNOWN = 100
"""How many ids may be missing in the registry: each of them costs a restart."""
_KINDS = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}


@dataclass(frozen=True, slots=True)
class UnknownIds:
    """Ids of schemas in messages that the registry does not have, found in this run."""

    key: set[int] = field(default_factory=set)
    value: set[int] = field(default_factory=set)

    def of(self, what: What) -> set[int]:
        return self.key if what == "key" else self.value


@dataclass(frozen=True, slots=True)
class JsonSchemaPart(MessagePart):
    """A value in JSON after the id of its schema; the schema defines the columns."""

    def text(self) -> Column:
        from pyspark.sql import functions as F

        return F.expr("CASE WHEN substring(value, 1, 1) = X'00' AND octet_length(value) >= 5 THEN substring(value, 6) END").cast("string")


def known_columns(source: KafkaSource, topics: Sequence[str], what: What, context: NodeContext, seconds: float = 0) -> pa.Schema:
    """The columns of a part, pinned or from the registry. Nothing is stored."""
    library = _library(source, topics, what, context, seconds)
    return _columns(source, what, library.pinned() or _first(library))


def registered_part(
    source: KafkaSource, topics: Sequence[str], what: What, spark: SparkSession, context: NodeContext, unknown: UnknownIds
) -> MessagePart:
    """The decoder of a part for this start."""
    library = _library(source, topics, what, context)
    if library.pinned() is None:
        _first(library)
    reader = library.pin(lambda known: _fits(_columns(source, what, known), context.schema))
    format_ = source.format if what == "value" else source.key_format
    columns = _select_declared(source, what, _columns(source, what, reader), context.name)
    if format_ == "json_schema":
        return JsonSchemaPart("json", columns, source.options, what, strict=not context.isolate)
    if format_ == "protobuf":
        return ProtobufPart("protobuf", columns, {}, what, descriptors=b64decode(reader.text), message=source.record or "")
    library.refresh()
    schema = _reader(source, what, reader)
    writers = library.stored_texts()
    subject = library.subjects[0]
    refused = refusals(spark, schema, writers, subject)
    refused |= {id_: f"schema {id_} is not in the registry (subject `{subject}`)" for id_ in unknown.of(what)}
    kept = {id_: text for id_, text in writers.items() if id_ not in refused}
    envelope = what == "value" and source.envelope is not None
    return AvroPart("avro", columns, {}, what, not context.isolate, envelope, context.name, schema, kept, refused)


def learn(source: KafkaSource, topics: Sequence[str], text: str, context: NodeContext, unknown: UnknownIds) -> bool:
    """Whether the failure was a new id that is resolved now."""
    found = unseen(text, context.name)
    if found is None:
        return False
    what: What = "key" if found[0] == "key" else "value"
    if _library(source, topics, what, context).look_up(found[1]):
        return True
    ids = unknown.of(what)
    if len(ids) >= _MOST_UNKNOWN:
        message = f"`{context.name}` has read more than {_MOST_UNKNOWN} ids that the schema registry does not have"
        raise RunError(Diagnostic("MS102", message, help="the messages may use another registry or another format"))
    ids.add(found[1])
    return True


def key_of(source: KafkaSource, context: NodeContext) -> tuple[str, ...]:
    """The primary key in the reader's schema, if its columns exist."""
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


def _first(library: Library) -> StoredSchema:
    """If the registry has never answered, its address is wrong: that is not a temporary failure."""
    try:
        return library.latest()
    except TemporaryError as error:
        raise RunError(error.diagnostics) from None


def _reader(source: KafkaSource, what: What, known: StoredSchema) -> avro.AvroSchema:
    schema = avro.parse(known.text)
    return trim_envelope(schema) if what == "value" and source.envelope else schema


def _columns(source: KafkaSource, what: What, known: StoredSchema) -> pa.Schema:
    format_ = source.format if what == "value" else source.key_format
    if known.kind != _KINDS[format_]:
        message = f"`format: {format_}` does not fit: the registry's schema {known.id} is of type {known.kind}"
        raise RunError(Diagnostic("MS105", message))
    try:
        if format_ == "json_schema":
            return json_schema.columns(known.text)
        if format_ == "protobuf":
            return protobuf.columns(b64decode(known.text), source.record or "")
        schema = _reader(source, what, known)
        alone = next(iter(source.key or {"key": ""})) if what == "key" else "value"
        return (row_type(schema) if what == "value" and source.envelope else schema).columns(alone)
    except ValueError as error:
        raise RunError(Diagnostic("MS105", f"the registry's schema {known.id} cannot be converted to columns: {error}")) from None


def _select_declared(source: KafkaSource, what: What, held: pa.Schema, node: str) -> pa.Schema:
    """The columns that the user declares, which must exist; all when none are declared."""
    wanted = source.columns if what == "value" else source.key
    for name in wanted or {}:
        if name not in held.names:
            message = f"`{node}` declares column `{name}`, but the registry's schema does not have it"
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
