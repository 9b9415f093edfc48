"""Messages become rows: Spark's own parsers on the value and on the key, and one sentence for each message that does not fit.

Spark parses only what somebody reads, and parses twice when a condition on parsed columns is pushed below the projection. Both would be
wrong here: whether a message is bad must not depend on who reads it, and parsing is what a Kafka source costs. The parsed projection
therefore holds a column that the optimizer must not copy (`_HERE`), and the condition above it needs every parsed column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from millstream.clients.kafka import Offsets
from millstream.plan.components import REJECT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

Format = Literal["json", "csv", "string", "bytes"]
MARK = "millstream-row"
METADATA: Mapping[str, str] = {
    "__kafka_topic": "string",
    "__kafka_partition": "int32",
    "__kafka_offset": "int64",
    "__kafka_timestamp": "timestamp",
    "__kafka_headers": "list<struct<key: string, value: binary>>",
    "__kafka_key": "binary",
}
"""Column → type, in the order of the source's documentation."""
_HERE, _VALUE, _KEY, _RAW, _ERROR = "_millstream_here", "_millstream_value", "_millstream_key", "_millstream_raw", "_millstream_error"


@dataclass(frozen=True, slots=True)
class Part:
    """The value of a message, or its key."""

    format: Format
    schema: pa.Schema
    options: Mapping[str, str]
    what: Literal["value", "key"]

    @property
    def column(self) -> str:
        return _VALUE if self.what == "value" else _KEY


@dataclass(frozen=True, slots=True)
class Decoding:
    """How messages become rows."""

    node: str
    value: Part
    key: Part | None
    filter: str | None
    metadata: bool
    isolate: bool


def decoded(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """Key columns, value columns and metadata of every message; bad ones in `REJECT`, or as an error that says which one it was."""
    from pyspark.sql import functions as F

    parts = [part for part in (decoding.key, decoding.value) if part]
    parsed = frame.select("*", F.spark_partition_id().alias(_HERE), *[_parsed(part).alias(part.column) for part in parts])
    error = F.coalesce(*[_error(part) for part in parts])
    if decoding.isolate:
        return _chosen(parsed.where(F.col(_HERE) >= 0).select("*", error.alias(_ERROR)), decoding, parts)
    refusal = F.raise_error(F.concat(F.lit(f"{MARK}: {decoding.node}: "), _place(), F.lit(": "), error))
    fine = parsed.where((F.col(_HERE) >= 0) & F.when(error.isNull(), F.lit(True)).otherwise(refusal.cast("boolean")))
    # a reader's own condition may be tried first, and the nulls of a bad message would not pass it: the columns refuse too
    sure = [F.when(error.isNull(), F.col(part.column)).otherwise(refusal).alias(part.column) for part in parts]
    return _chosen(fine.select(*frame.columns, *sure), decoding, parts)


def before(frame: DataFrame, ends: Offsets) -> DataFrame:
    """The messages before the end of a bounded source."""
    topics = "".join(
        f" WHEN {_literal(topic)} THEN CASE partition{''.join(f' WHEN {p} THEN {end}L' for p, end in parts.items())} END"
        for topic, parts in ends.items()
        if parts
    )
    return frame.where(f"offset < CASE topic{topics} END") if topics else frame.where("false")


def _chosen(rows: DataFrame, decoding: Decoding, parts: list[Part]) -> DataFrame:
    """Named columns, of those rows that the user's filter lets through."""
    from pyspark.sql import functions as F

    fine = F.col(_ERROR).isNull() if decoding.isolate else None
    columns = [
        (F.when(fine, column) if fine is not None else column).alias(field.name)
        for part in parts
        for field, column in zip(part.schema, _columns(part), strict=True)
    ]
    described = decoding.metadata or decoding.filter
    metadata = [F.col(name.removeprefix("__kafka_")).alias(name) for name in METADATA] if described else []
    rejects = [_reject().alias(REJECT)] if decoding.isolate else []
    frame = rows.select(*columns, *metadata, *rejects)
    if decoding.filter:
        kept = F.expr(decoding.filter)
        frame = frame.where(F.col(REJECT).isNotNull() | kept if decoding.isolate else kept)
    return frame if decoding.metadata or not described else frame.drop(*METADATA)


def _parsed(part: Part) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType

    text = F.col(part.what).cast("string")
    if part.format in {"string", "bytes"}:
        return F.col(part.what) if part.format == "bytes" else text
    schema = from_arrow_schema(part.schema, prefer_timestamp_ntz=True).add(_RAW, StringType())
    options = {**part.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RAW}
    return F.from_json(text, schema, options) if part.format == "json" else F.from_csv(text, _ddl(schema), options)


def _ddl(schema: StructType) -> str:
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema)


def _columns(part: Part) -> list[Column]:
    """One per field of the schema."""
    from pyspark.sql import functions as F

    parsed = F.col(part.column)
    if part.format in {"json", "csv"}:
        return [parsed.getField(field.name) for field in part.schema]
    if part.format == "bytes":
        return [parsed]
    return [_try_cast(text, field) for text, field in zip(_texts(part), part.schema, strict=True)]


def _texts(part: Part) -> list[Column]:
    """A text, or its pieces between colons when it makes several columns."""
    from pyspark.sql import functions as F

    if len(part.schema) == 1:
        return [F.col(part.column)]
    return [F.try_element_at(F.split(part.column, ":", len(part.schema)), F.lit(index + 1)) for index in range(len(part.schema))]


def _error(part: Part) -> Column:
    """Why a message is bad; null when it is not."""
    from pyspark.sql import functions as F

    raw, parsed = F.col(part.what), F.col(part.column)
    if part.format == "bytes":
        return F.lit(None).cast("string")
    if part.format == "string":
        found = F.when(raw.isNotNull() & ~F.is_valid_utf8(parsed), f"the {part.what} is not UTF-8 text")
        for text, field in zip(_texts(part), part.schema, strict=True):
            lost = raw.isNotNull() & _try_cast(text, field).isNull()
            found = found.when(lost, f"the {part.what} does not fit `{field.name}` as {field.type}")
        return found
    name = part.format.upper()
    kind = f"{name} object" if part.format == "json" else f"{name} row"
    missing = F.when(raw.isNull(), f"the message has no {part.what}").when(parsed.isNull(), f"the {part.what} holds no {kind}")
    return missing.when(parsed.getField(_RAW).isNotNull(), f"the {part.what} is no {kind} that fits the schema")


def _try_cast(text: Column, field: pa.Field) -> Column:
    from pyspark.sql.pandas.types import from_arrow_type

    return text.try_cast(from_arrow_type(field.type, prefer_timestamp_ntz=True))


def _place() -> Column:
    from pyspark.sql import functions as F

    return F.format_string("topic %s, partition %d, offset %d", "topic", "partition", "offset")


def _reject() -> Column:
    """The message as JSON, with its place; bytes that are no text in base64."""
    from pyspark.sql import functions as F

    def shown(name: str) -> list[Column]:
        text = F.col(name).cast("string")
        valid = F.is_valid_utf8(text)
        return [F.when(valid, text).alias(name), F.when(~valid, F.base64(name)).alias(f"{name}_base64")]

    message = F.to_json(F.struct("topic", "partition", "offset", "timestamp", *shown("key"), *shown("value")))
    return F.when(F.col(_ERROR).isNotNull(), F.struct(message.alias("raw"), F.col(_ERROR).alias("error")))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
