"""Converts messages to rows, with one sentence for each message that does not fit.

Spark parses only the selected columns, and parses twice when a condition on parsed columns is pushed below the projection. Both would be
wrong here: whether a message is valid must not depend on its reader, and parsing is the main cost of a Kafka source. So the projection has
a column that the optimizer must not copy (`_HERE`), and the condition above it refers to every parsed column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.clients.kafka import Offsets
from millstream.connectors.kafka.columns import METADATA
from millstream.connectors.kafka.parts import MessagePart
from millstream.plan.changelog import OP, SEQUENCE
from millstream.plan.components import POSITION, REJECT
from millstream.plan.tracing import HEADER, TRACED, VALID
from millstream.worker import marks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HERE, _ERROR = "_millstream_here", "_millstream_error"


@dataclass(frozen=True, slots=True)
class Decoding:
    """How messages become rows."""

    node: str
    value: MessagePart
    key: MessagePart | None
    filter: str | None
    metadata: bool
    isolate: bool
    header: str = ""
    """The header with the operation."""
    deletes: bool = False
    """Whether a message without a value deletes the row of its key."""
    trace: bool = False
    """Whether rows have the trace context of their message as a column."""
    traced: bool = False
    """Whether records are traced: rows have their context, and the place of their message."""

    @property
    def parts(self) -> list[MessagePart]:
        return [part for part in (self.key, self.value) if part]

    @property
    def plain(self) -> bool:
        """Whether rows are JSON values whose parser stops at an invalid one, and nothing else is read."""
        return not (self.isolate or self.key or self.changes) and self.value.strict and self.value.format == "json"

    @property
    def changes(self) -> bool:
        """Whether the rows are a changelog."""
        return self.value.envelope or bool(self.header) or self.deletes


def decode(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """Key columns, value columns and metadata of every message; invalid ones in `REJECT`, or as an error with their position."""
    from pyspark.sql import functions as F

    parts = decoding.parts
    if decoding.plain:
        return _select(_parse_or_fail(frame, decoding), decoding)
    parsed = frame.select("*", F.spark_partition_id().alias(_HERE), *[part.parse().alias(part.column) for part in parts])
    error = _error(decoding)
    if decoding.isolate:
        return _select(parsed.where(F.col(_HERE) >= 0).select("*", error.alias(_ERROR)), decoding)
    refusal = F.raise_error(F.concat(_place(decoding.node), F.lit(": "), error)).cast("boolean")
    fine = parsed.where((F.col(_HERE) >= 0) & F.when(error.isNull(), F.lit(True)).otherwise(refusal))
    # a reader's condition may run first, and the nulls of an invalid message would not pass it: the columns fail too, with a short text,
    # because it is part of every reader's generated code
    short = F.raise_error(F.concat(_place(decoding.node), F.lit(": the message does not fit the format or the schema")))
    sure = [F.when(error.isNull(), F.col(part.column)).otherwise(short).alias(part.column) for part in parts]
    return _select(fine.select(*frame.columns, *sure), decoding)


def _parse_or_fail(frame: DataFrame, decoding: Decoding) -> DataFrame:
    """For messages that can only be invalid by being null: the parsed value itself fails, and the condition forces parsing."""
    from pyspark.sql import functions as F

    reason = F.when(F.col("value").isNull(), ": the message has no value").otherwise(": the value holds no JSON object")
    value = F.coalesce(decoding.value.parse(), F.raise_error(F.concat(_place(decoding.node), reason)))
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


def _select(rows: DataFrame, decoding: Decoding) -> DataFrame:
    """Named columns, of the rows that pass the user's filter."""
    from pyspark.sql import functions as F

    named = {field.name: column for part in decoding.parts for field, column in zip(part.schema, part.columns(), strict=True)}
    if decoding.changes:
        named |= {OP: _operation(decoding), SEQUENCE: F.col("offset")}
    context = F.when(_header(HEADER).rlike(VALID), _header(HEADER))
    if decoding.trace:
        named[HEADER] = context
    fine = F.col(_ERROR).isNull() if decoding.isolate else None
    columns = [(F.when(fine, column) if fine is not None else column).alias(name) for name, column in named.items()]
    described = decoding.metadata or decoding.filter
    metadata = [F.col(name.removeprefix("__kafka_")).alias(name) for name in METADATA] if described else []
    rejects = [_reject().alias(REJECT)] if decoding.isolate else []
    place = [context.alias(TRACED), F.struct("topic", "partition", "offset").alias(POSITION)] if decoding.traced else []
    frame = rows.select(*columns, *metadata, *place, *rejects)
    if decoding.filter:
        kept = F.expr(decoding.filter)
        frame = frame.where(F.col(REJECT).isNotNull() | kept if decoding.isolate else kept)
    return frame if decoding.metadata or not described else frame.drop(*METADATA)


def _error(decoding: Decoding) -> Column:
    """Why a message is invalid; null when it is valid."""
    from pyspark.sql import functions as F

    found = [part.error() for part in decoding.parts if part.what == "key" or not decoding.deletes]
    if decoding.deletes:
        keyless = F.when(F.col("key").isNull(), "the message has neither key nor value")
        found.append(F.when(F.col("value").isNull(), keyless).otherwise(decoding.value.error()))
    if decoding.header:
        op = _header(decoding.header)
        sentence = F.concat(F.lit(f"the header `{decoding.header}` holds `"), op, F.lit("`, which is not one of r, c, u and d"))
        found.append(F.when(~op.isin("r", "c", "u", "d"), sentence))
    return F.coalesce(*found)


def _operation(decoding: Decoding) -> Column:
    """`i`, `u` or `d` for Debezium's letters; a message without an operation is an insert."""
    from pyspark.sql import functions as F

    op = decoding.value.operation() if decoding.value.envelope else _header(decoding.header) if decoding.header else F.lit("c")
    letter = F.when(op.isin("u", "d"), op).otherwise("i")
    return F.when(F.col("value").isNull(), "d").otherwise(letter) if decoding.deletes else letter


def _header(name: str) -> Column:
    """The last header of that name, as text."""
    from pyspark.sql import functions as F

    return F.try_element_at(F.filter("headers", lambda header: header.getField("key") == name), F.lit(-1)).getField("value").cast("string")


def _place(node: str) -> Column:
    """The node and the position of a message, in the form that `failures` searches for."""
    from pyspark.sql import functions as F

    return F.format_string(
        f"{marks.refusal('MS062', node.replace('%', '%%'), 'schema')}topic %s, partition %d, offset %d", "topic", "partition", "offset"
    )


def _reject() -> Column:
    """The message as JSON, with its position; bytes that are not text in base64."""
    from pyspark.sql import functions as F

    def shown(name: str) -> list[Column]:
        text = F.col(name).cast("string")
        valid = F.is_valid_utf8(text)
        return [F.when(valid, text).alias(name), F.when(~valid, F.base64(name)).alias(f"{name}_base64")]

    message = F.to_json(F.struct("topic", "partition", "offset", "timestamp", *shown("key"), *shown("value")))
    return F.when(F.col(_ERROR).isNotNull(), F.struct(message.alias("raw"), F.col(_ERROR).alias("error")))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
