"""Checks on the options of a source or sink that their types cannot express: which of them go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
from pydantic import BeforeValidator

from millstream.connectors.kafka.columns import CHANGES, METADATA
from millstream.connectors.kafka.registry import REGISTERED
from millstream.connectors.kafka.schemas.protofile import file_columns
from millstream.errors import nearest
from millstream.plan import expressions, types
from millstream.plan.components import Problem

if TYPE_CHECKING:
    from millstream.connectors.kafka.sink import KafkaSink
    from millstream.connectors.kafka.source import KafkaSource


def _texts(value: Any) -> Any:
    """Java needs `fetch.max.bytes: 1048576` and `multiLine: true` as texts."""
    if not isinstance(value, dict):
        return value
    return {name: str(option).lower() if isinstance(option, bool) else str(option) for name, option in value.items()}


FormatOptions = Annotated[dict[str, str], BeforeValidator(_texts)]


def option_problems(source: KafkaSource) -> list[Problem]:
    broken = file_problem(source)
    return [
        *([broken] if broken else []),
        *_which(source),
        *_schema(source),
        *_key(source),
        *_changes(source),
        *_filter(source),
        *_consumer(source),
    ]


def file_problem(source: KafkaSource) -> Problem | None:
    """The problem with the schema file, if any."""
    if source.schema_file is None:
        return None
    if source.format != "protobuf":
        return Problem("MS008", f"`schema_file` goes with `format: protobuf`, not with {source.format}", "schema_file")
    try:
        held = file_columns(source.schema_file, source.record or "")
    except ValueError as error:
        return Problem("MS105", str(error), "schema_file")
    lacking = [name for name in source.columns or {} if name not in held.names]
    return Problem("MS105", f"the message has no field `{lacking[0]}`", "schema", nearest(lacking[0], held.names)) if lacking else None


def _which(source: KafkaSource) -> Iterator[Problem]:
    given = [name for name in ("topic", "topics", "pattern") if getattr(source, name)]
    if len(given) != 1:
        what = f"{' and '.join(f'`{name}`' for name in given)} exclude each other" if given else "a Kafka source needs `topic`"
        yield Problem("MS008" if given else "MS007", what, given[-1] if given else "", "give one of `topic`, `topics` and `pattern`")
    if source.pattern:
        try:
            re.compile(source.pattern)
        except re.error as error:
            yield Problem("MS008", f"`{source.pattern}` is not a regular expression: {error}", "pattern")


def _schema(source: KafkaSource) -> Iterator[Problem]:
    if source.format in {"json", "csv"} and not source.columns:
        yield Problem("MS007", f"format `{source.format}` needs a `schema`", "format", "such as `schema: {id: int64, name: string}`")
    if source.format in {"string", "bytes"} and source.columns:
        kind = "binary" if source.format == "bytes" else "string"
        if list(source.columns.values()) != [kind]:
            yield Problem("MS008", f"format `{source.format}` has one column of type {kind}", "schema", "leave `schema` out")
    nested = [name for name, kind in (source.columns or {}).items() if pa.types.is_nested(types.parse(kind))]
    if source.format == "csv" and nested:
        yield Problem("MS008", f"csv has no way to write `{nested[0]}` as {(source.columns or {})[nested[0]]}", "schema")
    held: Mapping[str, str] = source.columns or ({} if source.format in REGISTERED else {"value": ""})
    twice = [name for name in held if name in (source.key or {})]
    if twice:
        yield Problem("MS008", f"`{twice[0]}` is a column of the key and of the value", "key", "rename one of them")


def _key(source: KafkaSource) -> Iterator[Problem]:
    kinds = list((source.key or {}).values())
    if source.key_format == "bytes" and kinds and kinds != ["binary"]:
        yield Problem("MS008", "a key as bytes has one column of type binary", "key", "such as `key: {id: binary}`")
    if source.key_format in {"json", "bytes"} and not source.key:
        yield Problem("MS008", "`key_format` needs `key`", "key_format", "such as `key: {id: int64}`")
    if source.key_format == "string" and any(pa.types.is_nested(types.parse(kind)) for kind in kinds):
        yield Problem("MS008", "a key as text has no way to write lists and structures", "key", "use `key_format: json`")


def _changes(source: KafkaSource) -> Iterator[Problem]:
    if source.envelope and source.format not in {"json", "avro"}:
        yield Problem("MS008", f"Debezium's envelopes are Avro or JSON here, not {source.format}", "envelope", "use `format: avro`")
    if source.envelope and (source.tombstones != "bad" or source.operation_header):
        other = "tombstones" if source.tombstones != "bad" else "operation_header"
        yield Problem("MS008", f"an envelope contains the operation, and so does `{other}`", other, "leave it out")
    if source.tombstones == "delete" and not source.key and source.key_format != "avro":
        yield Problem("MS008", "`tombstones: delete` needs `key`", "tombstones", "such as `key: {id: int64}`")
    clash = [name for name in (*(source.key or {}), *(source.columns or {})) if name in CHANGES]
    if clash and (source.envelope or source.operation_header or source.tombstones == "delete"):
        yield Problem("MS008", f"the source adds `{clash[0]}` itself", "schema", "rename the column")


def _filter(source: KafkaSource) -> Iterator[Problem]:
    schema = source.output()
    if schema is None:
        return
    known = [*schema.names, *METADATA]
    for column in expressions.columns_in(source.filter) if source.filter else ():
        name = column.parts[0].name
        if name.lower() not in {each.lower() for each in known}:
            yield Problem("MS024", f"unknown column `{name}`", "filter", nearest(name, known))


def _consumer(source: KafkaSource) -> Iterator[Problem]:
    own = {"bootstrap.servers": "bootstrap_servers", "group.id": "", "auto.offset.reset": "starting_offsets", "isolation.level": ""}
    for name in source.consumer:
        if name in own or name.startswith(("sasl.", "ssl.", "security.")):
            option = own.get(name, "security")
            yield Problem("MS008", f"`{name}` cannot be set in `consumer`", "consumer", f"use `{option}`" if option else "")


def sink_problems(sink: KafkaSink, schema: pa.Schema | None) -> list[Problem]:
    """Conflicts between the sink's options and the input columns."""
    return [*_unknown(sink, schema), *_plain(sink, schema), *_producer(sink)]


def _unknown(sink: KafkaSink, schema: pa.Schema | None) -> Iterator[Problem]:
    if schema is None:
        return
    headers = [header.column for header in sink.headers.values() if not isinstance(header, str)]
    for option, columns in (("key", sink.key), ("value", sink.value), ("headers", headers)):
        for name in columns:
            if name not in schema.names:
                yield Problem("MS024", f"unknown column `{name}`", option, nearest(name, schema.names))


def _plain(sink: KafkaSink, schema: pa.Schema | None) -> Iterator[Problem]:
    if sink.format in {"string", "bytes"} and len(sink.value) > 1:
        yield Problem("MS008", f"format `{sink.format}` writes one column", "value", "use `json`, or join the columns before")
    if sink.key_format == "bytes" and len(sink.key) > 1:
        yield Problem("MS008", "a key as bytes is one column", "key")
    chosen = sink.value or (tuple(schema.names) if schema is not None else ())
    nested = [name for name in chosen if schema is not None and name in schema.names and pa.types.is_nested(schema.field(name).type)]
    if sink.format == "csv" and nested:
        yield Problem("MS026", f"csv cannot hold `{nested[0]}`, which is nested", "format", "write JSON instead, or make it text before")


def _producer(sink: KafkaSink) -> Iterator[Problem]:
    own = {"bootstrap.servers": "bootstrap_servers", "transactional.id": "", "enable.idempotence": "", "acks": "", "partitioner": ""}
    own |= {"linger.ms": "linger", "compression.type": "compression", "batch.size": "batch_size"}
    own |= {"transaction.timeout.ms": "transaction_timeout", "message.max.bytes": "max_message_size"}
    for name in sink.producer:
        if name in own or name.startswith(("sasl.", "ssl.", "security.")):
            option = own.get(name, "security")
            yield Problem("MS008", f"`{name}` cannot be set in `producer`", "producer", f"use `{option}`" if option else "")
