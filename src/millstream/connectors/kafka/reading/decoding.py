"""Messages become rows, and one sentence for each message that does not fit.

Spark parses only what somebody reads, and parses twice when a condition on parsed columns is pushed below the projection. Both would be
wrong here: whether a message is bad must not depend on who reads it, and parsing is what a Kafka source costs. The parsed projection
therefore holds a column that the optimizer must not copy (`_HERE`), and the condition above it needs every parsed column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.clients.kafka import Offsets
from millstream.connectors.kafka.reading.parsing import Part
from millstream.plan.changelog import OP, SEQUENCE
from millstream.plan.components import REJECT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
CHANGES: Mapping[str, str] = {OP: "string", SEQUENCE: "int64"}
"""The columns of a changelog. Messages of one key share a partition, so the offset is their order."""
TRACE = "traceparent"
"""The column, and the header, of the W3C's trace context."""
_TRACEPARENT = "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
_HERE, _ERROR = "_millstream_here", "_millstream_error"


@dataclass(frozen=True, slots=True)
class Decoding:
    """How messages become rows."""

    node: str
    value: Part
    key: Part | None
    filter: str | None
    metadata: bool
    isolate: bool
    header: str = ""
    """The header that says what happened to the row."""
    deletes: bool = False
    """Whether a message without a value deletes the row of its key."""
    trace: bool = False
    """Whether rows carry the trace that their message belongs to."""

    @property
    def parts(self) -> list[Part]:
        return [part for part in (self.key, self.value) if part]

    @property
    def plain(self) -> bool:
        """Whether rows are JSON values that the parser itself stops at when they are bad, and nothing else is looked at."""
        return not (self.isolate or self.key or self.changes) and self.value.strict and self.value.format == "json"

    @property
    def changes(self) -> bool:
        """Whether the rows are a changelog."""
        return self.value.envelope or bool(self.header) or self.deletes


def decoded(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """Key columns, value columns and metadata of every message; bad ones in `REJECT`, or as an error that says which one it was."""
    from pyspark.sql import functions as F

    parts = decoding.parts
    if decoding.plain:
        return _chosen(_parsed_or_refused(frame, decoding), decoding)
    parsed = frame.select("*", F.spark_partition_id().alias(_HERE), *[part.parsed().alias(part.column) for part in parts])
    error = _error(decoding)
    if decoding.isolate:
        return _chosen(parsed.where(F.col(_HERE) >= 0).select("*", error.alias(_ERROR)), decoding)
    refusal = F.raise_error(F.concat(_place(decoding.node), F.lit(": "), error)).cast("boolean")
    fine = parsed.where((F.col(_HERE) >= 0) & F.when(error.isNull(), F.lit(True)).otherwise(refusal))
    # a reader's own condition may be tried first, and the nulls of a bad message would not pass it: the columns refuse too, in few words,
    # because every reader has them in its code
    short = F.raise_error(F.concat(_place(decoding.node), F.lit(": the message does not fit the format or the schema")))
    sure = [F.when(error.isNull(), F.col(part.column)).otherwise(short).alias(part.column) for part in parts]
    return _chosen(fine.select(*frame.columns, *sure), decoding)


def _parsed_or_refused(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """Where a null is all that can be wrong: the parsed value itself refuses, and the condition sees to it that somebody parses."""
    from pyspark.sql import functions as F

    reason = F.when(F.col("value").isNull(), ": the message has no value").otherwise(": the value holds no JSON object")
    value = F.coalesce(decoding.value.parsed(), F.raise_error(F.concat(_place(decoding.node), reason)))
    parsed = frame.select("*", F.spark_partition_id().alias(_HERE), value.alias(decoding.value.column))
    return parsed.where((F.col(_HERE) >= 0) & F.col(decoding.value.column).isNotNull())


def before(frame: DataFrame, ends: Offsets) -> DataFrame:
    """The messages before the end of a bounded source."""
    topics = "".join(
        f" WHEN {_literal(topic)} THEN CASE partition{''.join(f' WHEN {p} THEN {end}L' for p, end in parts.items())} END"
        for topic, parts in ends.items()
        if parts
    )
    return frame.where(f"offset < CASE topic{topics} END") if topics else frame.where("false")


def _chosen(rows: DataFrame, decoding: Decoding) -> DataFrame:
    """Named columns, of those rows that the user's filter lets through."""
    from pyspark.sql import functions as F

    named = {field.name: column for part in decoding.parts for field, column in zip(part.schema, part.columns(), strict=True)}
    if decoding.changes:
        named |= {OP: _operation(decoding), SEQUENCE: F.col("offset")}
    if decoding.trace:
        given = _header(TRACE)
        named[TRACE] = F.when(given.rlike(_TRACEPARENT), given)
    fine = F.col(_ERROR).isNull() if decoding.isolate else None
    columns = [(F.when(fine, column) if fine is not None else column).alias(name) for name, column in named.items()]
    described = decoding.metadata or decoding.filter
    metadata = [F.col(name.removeprefix("__kafka_")).alias(name) for name in METADATA] if described else []
    rejects = [_reject().alias(REJECT)] if decoding.isolate else []
    frame = rows.select(*columns, *metadata, *rejects)
    if decoding.filter:
        kept = F.expr(decoding.filter)
        frame = frame.where(F.col(REJECT).isNotNull() | kept if decoding.isolate else kept)
    return frame if decoding.metadata or not described else frame.drop(*METADATA)


def _error(decoding: Decoding) -> Column:
    """Why a message is bad; null when it is not."""
    from pyspark.sql import functions as F

    found = [part.error() for part in decoding.parts if part.what == "key" or not decoding.deletes]
    if decoding.deletes:
        keyless = F.when(F.col("key").isNull(), "the message has neither key nor value")
        found.append(F.when(F.col("value").isNull(), keyless).otherwise(decoding.value.error()))
    if decoding.header:
        op = _header(decoding.header)
        sentence = F.concat(F.lit(f"the header `{decoding.header}` holds `"), op, F.lit("`, which is none of r, c, u and d"))
        found.append(F.when(~op.isin("r", "c", "u", "d"), sentence))
    return F.coalesce(*found)


def _operation(decoding: Decoding) -> Column:
    """`i`, `u` or `d`, as Debezium's letters say; a message that says nothing is an insert."""
    from pyspark.sql import functions as F

    op = decoding.value.operation() if decoding.value.envelope else _header(decoding.header) if decoding.header else F.lit("c")
    letter = F.when(op.isin("u", "d"), op).otherwise("i")
    return F.when(F.col("value").isNull(), "d").otherwise(letter) if decoding.deletes else letter


def _header(name: str) -> Column:
    """The last header of that name, as text."""
    from pyspark.sql import functions as F

    return F.try_element_at(F.filter("headers", lambda header: header.getField("key") == name), F.lit(-1)).getField("value").cast("string")


def _place(node: str) -> Column:
    """Whose message it is and where it stands, as `failures` looks for it."""
    from pyspark.sql import functions as F

    return F.format_string(f"{MARK}: {node.replace('%', '%%')}: topic %s, partition %d, offset %d", "topic", "partition", "offset")


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
