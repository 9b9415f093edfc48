"""Converts rows to messages with Spark's expressions: key, value, headers, the lane, and the row's position in the epoch.

A key has one lane, so one writer; the position keeps the order of the frame within the lane, `_seq` that of the source. The producer
chooses the partition of a key (murmur2, like Java's clients), not the lane: a lane is a writer, not a partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.connectors.kafka.parts import Format
from millstream.connectors.kafka.registry import REGISTERED
from millstream.connectors.kafka.schemas.registration import Registration
from millstream.errors import Diagnostic, RunError
from millstream.plan.changelog import DELETE, INSERT, SEQUENCE, UPDATE, op_of
from millstream.plan.expressions import quote_column
from millstream.plan.tracing import HEADER, TRACED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DEBEZIUM = {INSERT: "c", UPDATE: "u", DELETE: "d"}


@dataclass(frozen=True, slots=True)
class Encoding:
    """How rows become messages."""

    node: str
    format: Format
    value: tuple[str, ...]
    key: tuple[str, ...]
    key_format: Literal["string", "json", "bytes", "avro"]
    options: Mapping[str, str]
    static: Mapping[str, str]
    """Headers with a constant value."""
    dynamic: Mapping[str, str]
    """Header → column."""
    deletes: Literal["tombstone", "row", "drop"]
    registration: Registration | None = None
    """For formats whose schemas are in a registry."""


def encode(frame: DataFrame, encoding: Encoding) -> DataFrame:
    """`key`, `value` and `headers` of every row, in the frame's order, and its position in the source if the row has it."""
    from pyspark.sql import functions as F

    op = op_of(frame.columns)
    if op and encoding.deletes == "tombstone" and not encoding.key:
        message = f"`{encoding.node}` writes deletes as tombstones, but its messages have no key"
        raise RunError(Diagnostic("MS007", message, help="give `key`, or `deletes: row` or `deletes: drop`"))
    if op and encoding.deletes == "drop":
        frame = frame.where(F.coalesce(F.col(op) != DELETE, F.lit(True)))
    order = [F.col(SEQUENCE)] if SEQUENCE in frame.columns else []
    return frame.select(*order, *[column.alias(name) for name, column in message_of(frame, encoding).items()])


def message_of(frame: DataFrame, encoding: Encoding) -> dict[str, Column]:
    """The columns of a message: `key`, `value`, and `headers` if there are any."""
    from pyspark.sql import functions as F

    op = op_of(frame.columns)
    value = _value(frame, encoding)
    if op and encoding.deletes == "tombstone":
        value = F.when(F.coalesce(F.col(op) != DELETE, F.lit(True)), value)
    headers = _headers(frame, encoding, op)
    return {"key": _key(frame, encoding), "value": value, **({} if headers is None else {"headers": headers})}


def in_lanes(messages: DataFrame, lanes: int) -> DataFrame:
    """The messages with their lane and position. Messages without a key are distributed."""
    from pyspark.sql import functions as F

    spread = F.pmod(F.xxhash64(F.coalesce("key", "value")), F.lit(lanes)).cast("int")
    return messages.select(spread.alias("lane"), F.monotonically_increasing_id().alias("place"), "*")


def in_order(lanes: DataFrame) -> DataFrame:
    """Each lane's messages in the order of writing: that of the source, if rows have it, else that of the frame."""
    order = [name for name in (SEQUENCE, "place") if name in lanes.columns]
    return lanes.sortWithinPartitions(*order).drop(*order)


def _value(frame: DataFrame, encoding: Encoding) -> Column:
    from pyspark.sql import functions as F

    names = _value_columns(frame, encoding)
    if encoding.registration is not None and encoding.format in REGISTERED:
        return encoding.registration.encode(frame, names, "value")
    columns = [F.col(quote_column(name)) for name in names]
    if encoding.format == "json":
        return F.to_json(F.struct(*columns), {"ignoreNullFields": "false", **encoding.options}).cast("binary")
    if encoding.format == "csv":
        return F.to_csv(F.struct(*columns), dict(encoding.options)).cast("binary")
    return columns[0].cast("binary") if encoding.format == "bytes" else columns[0].cast("string").cast("binary")


def _value_columns(frame: DataFrame, encoding: Encoding) -> list[str]:
    """The columns that the user names, or all except headers and the operation; text and bytes have one column, without the key."""
    if encoding.value:
        return list(encoding.value)
    left = [name for name in frame.columns if name not in encoding.dynamic.values() and name not in (op_of(frame.columns), HEADER, TRACED)]
    if encoding.format in {"string", "bytes"}:
        return ["value"] if "value" in left else [name for name in left if name not in encoding.key][:1] or left[:1]
    return left


def _key(frame: DataFrame, encoding: Encoding) -> Column:
    from pyspark.sql import functions as F

    columns = [F.col(quote_column(name)) for name in encoding.key]
    if not columns:
        return F.lit(None).cast("binary")
    if encoding.registration is not None and encoding.key_format in REGISTERED:
        return encoding.registration.encode(frame, encoding.key, "key")
    if encoding.key_format == "json":
        return F.to_json(F.struct(*columns), {"ignoreNullFields": "false"}).cast("binary")
    if encoding.key_format == "bytes":
        return columns[0].cast("binary")
    texts = [column.cast("string") for column in columns]
    joined = texts[0] if len(texts) == 1 else F.concat_ws(":", *[F.coalesce(text, F.lit("")) for text in texts])
    return joined.cast("binary")


def _headers(frame: DataFrame, encoding: Encoding, op: str) -> Column | None:
    from pyspark.sql import functions as F

    kinds = dict(frame.dtypes)
    values = {name: F.lit(text).cast("binary") for name, text in encoding.static.items()}
    given = {HEADER: HEADER} if HEADER in frame.columns and HEADER not in encoding.value else {}
    traced = {HEADER: TRACED} if TRACED in frame.columns else given
    for name, column in {**traced, **encoding.dynamic}.items():
        cell = F.col(quote_column(column))
        values[name] = cell if kinds[column] == "binary" else cell.cast("string").cast("binary")
    if op:
        code = F.lit(None).cast("string")
        for ours, theirs in _DEBEZIUM.items():
            code = F.when(F.col(op) == ours, F.lit(theirs)).otherwise(code)
        values["dbz.op"] = code.cast("binary")
    if not values:
        return None
    pairs = [F.when(value.isNotNull(), F.struct(F.lit(name).alias("key"), value.alias("value"))) for name, value in values.items()]
    return F.filter(F.array(*pairs), lambda pair: pair.isNotNull())
