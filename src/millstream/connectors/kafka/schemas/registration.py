"""A sink's schemas: derived from the columns, registered when they are new, and written as the header of each message.

Registration happens on the driver, once per run and again when the columns change; a registry returns the same id for the same schema.
Spark encodes the values. With `register: false` nothing is registered: rows are written with the subject's latest schema.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.clients.registered_schemas import Schema
from millstream.clients.schema_registry import IncompatibleSchemaError, SchemaRegistry
from millstream.clients.storage import Storage
from millstream.connectors.kafka.registry import What
from millstream.connectors.kafka.schemas.library import Library
from millstream.connectors.kafka.schemas.protobuf import make_encoder, on_arrays
from millstream.errors import Diagnostic, RunError
from millstream.formats import avro, avro_writer, json_schema, protobuf_writer
from millstream.plan.expressions import quote_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from millstream.connectors.kafka.sink import KafkaSink


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """The schema of one part of the messages, for the current columns."""

    columns: pa.Schema
    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Registration:
    """Converts one sink's columns to messages with a schema."""

    sink: KafkaSink
    node: str
    storage: Storage
    registered: dict[What, RegisteredSchema]
    """The schemas registered in this run."""
    key: tuple[str, ...] = ()
    """The columns that identify a row: the value's schema contains them, for readers."""

    def encode(self, frame: DataFrame, columns: Sequence[str], what: What) -> Column:
        """The header and the columns, in the part's format."""
        from pyspark.sql import functions as F
        from pyspark.sql.avro.functions import to_avro

        chosen = frame.select(*[F.col(quote_column(name)) for name in columns])
        id_, text = self._schema(chosen, what)
        row = F.struct(*[F.col(quote_column(name)) for name in columns])
        if self._format(what) == "protobuf":
            return on_arrays(make_encoder(b64decode(text), id_), "binary", row)
        if self._format(what) == "json_schema":
            body = F.to_json(row, {"ignoreNullFields": "false", **self.sink.options}).cast("binary")
        else:
            body = to_avro(row, text)
        return F.concat(F.lit(bytearray(b"\x00" + id_.to_bytes(4, "big"))), body)

    def _schema(self, frame: DataFrame, what: What) -> tuple[int, str]:
        from pyspark.sql.pandas.types import to_arrow_schema

        columns = to_arrow_schema(frame.schema)
        known = self.registered.get(what)
        if known is not None and known.columns.equals(columns):
            return known.id, known.text
        name = (self.sink.record if what == "value" else None) or avro_writer.record_name(self.sink.topic, what)
        try:
            schema = self._derive(columns, name, what)
        except ValueError as error:
            help_ = "convert or rename the column before, or leave it out with `value`"
            raise RunError(Diagnostic("MS105", f"`{self.node}` cannot write its columns: {error}", help=help_)) from None
        id_, used = self._register(schema, name, what) if self.sink.register_ else self._find_existing(schema, name, what)
        text = self._library().resolve(id_, used).text
        self.registered[what] = RegisteredSchema(columns, id_, text)
        return id_, text

    def _derive(self, columns: pa.Schema, name: str, what: What) -> Schema:
        if self._format(what) == "json_schema":
            return Schema(json_schema.schema_text(columns, name), "JSON")
        if self._format(what) == "protobuf":
            before = self.sink.registry().version(self._subject(name, what))
            known = self._library().descriptors(before.schema) if before is not None and before.schema.kind == "PROTOBUF" else b""
            return Schema(protobuf_writer.schema_of(columns, name, known), "PROTOBUF")
        key = self.key if what == "value" and set(self.key) <= set(columns.names) else ()
        return Schema(avro_writer.schema_of(columns, name, key))

    def _library(self) -> Library:
        return Library(self.sink.registry(), self.storage, (self.sink.subject or self.sink.topic,))

    def _register(self, schema: Schema, name: str, what: What) -> tuple[int, Schema]:
        registry, subject = self.sink.registry(), self._subject(name, what)
        try:
            return registry.register(subject, schema), schema
        except IncompatibleSchemaError as error:
            raise RunError(self._refusal(registry, subject, schema, str(error))) from None

    def _find_existing(self, schema: Schema, name: str, what: What) -> tuple[int, Schema]:
        subject = self._subject(name, what)
        latest = self.sink.registry().version(subject)
        if latest is None:
            help_ = "register it first, or leave `register: false` out"
            raise RunError(Diagnostic("MS102", f"the schema registry has no subject `{subject}`, and `register` is false", help=help_))
        if latest.schema.kind != schema.kind:
            raise RunError(Diagnostic("MS105", f"subject `{subject}` holds schemas of type {latest.schema.kind}, not {schema.kind}"))
        if schema.kind == "AVRO":
            theirs = avro.parse(self._library().resolve(latest.id, latest.schema).text)
            self._require_fields(avro.parse(schema.text), theirs, subject)
        return latest.id, latest.schema

    def _require_fields(self, own: avro.AvroSchema, theirs: avro.AvroSchema, subject: str) -> None:
        """Every column must have its field, and every field without a column must be optional."""
        fields = {each["name"]: each for each in (theirs.record or {"fields": []})["fields"]}
        columns = [each["name"] for each in (own.record or {"fields": []})["fields"]]
        extra = [name for name in columns if name not in fields]
        lacking = [
            name for name, each in fields.items() if name not in columns and not (isinstance(each["type"], list) and "null" in each["type"])
        ]
        if extra or lacking:
            told = [f"it has no field `{name}`" for name in extra] + [f"`{name}` has no column, and may not be null" for name in lacking]
            message = f"the columns of `{self.node}` do not fit the latest schema of subject `{subject}`"
            raise RunError(Diagnostic("MS105", message, detail="\n".join(told), help="choose columns with `value`"))

    def _refusal(self, registry: SchemaRegistry, subject: str, schema: Schema, said: str) -> Diagnostic:
        latest = registry.version(subject)
        told = [said]
        if schema.kind == "AVRO" and latest is not None:
            theirs = avro.parse(self._library().resolve(latest.id, latest.schema).text)
            told += avro_writer.differences(theirs, avro.parse(schema.text))
        message = f"the registry refuses the schema of `{self.node}` for subject `{subject}`"
        return Diagnostic(
            "MS104", message, detail="\n".join(filter(None, told)), help="`millstream explain MS104` lists the ways to fix it"
        )

    def _subject(self, name: str, what: What) -> str:
        sink = self.sink
        if what == "value" and sink.subject:
            return sink.subject
        if what == "key" or sink.subject_strategy == "topic":
            return f"{sink.topic}-{what}"
        return name if sink.subject_strategy == "record" else f"{sink.topic}-{name}"

    def _format(self, what: What) -> str:
        return self.sink.format if what == "value" else self.sink.key_format
