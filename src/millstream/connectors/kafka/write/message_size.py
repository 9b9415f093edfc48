"""Finds messages that are larger than the topic allows before they are sent, because Kafka would refuse them and their transaction.

Where the node's `on_error` is `fail` they stop the query, with the key and the size. Otherwise they are rejects, isolated first so that the
rest can be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.plan.components import REJECT
from millstream.plan.expressions import quote_column
from millstream.plan.tracing import TRACED
from millstream.worker import marks

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OVERHEAD = 256
"""The maximum overhead of a message."""


def size_of(messages: DataFrame) -> Column:
    """The size of a message in bytes."""
    return _size("headers" in messages.columns)


def fail_on_large(messages: DataFrame, node: str, limit: int) -> DataFrame:
    """The messages; one that is too large fails."""
    from pyspark.sql import functions as F

    size = size_of(messages)
    said = F.concat(F.lit(marks.refusal("MS097", node, "max_message_size")), _sentence(size, limit))
    return messages.where(F.when(size <= limit, F.lit(True)).otherwise(F.raise_error(said).cast("boolean")))


def with_size_rejects(frame: DataFrame, message: dict[str, Column], limit: int) -> DataFrame:
    """The rows; one whose message is too large is a reject."""
    from pyspark.sql import functions as F

    columns = frame.columns
    row = F.struct(*[F.col(quote_column(name)) for name in columns])
    made = frame.select(row.alias("row"), *[column.alias(name) for name, column in message.items()])
    size = _size("headers" in message)
    shown = [F.col(f"row.{quote_column(name)}").alias(name) for name in columns if name != TRACED]
    raw = F.to_json(F.struct(*shown), {"ignoreNullFields": "false"})
    reject = F.when(size > limit, F.struct(raw.alias("raw"), _sentence(size, limit).alias("error")))
    return made.select("row.*", reject.alias(REJECT))


def _size(headers: bool) -> Column:
    from pyspark.sql import functions as F

    size = F.lit(_OVERHEAD) + F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(F.octet_length("value"), F.lit(0))
    if not headers:
        return size
    return size + F.aggregate(
        "headers", F.lit(0), lambda sum_, pair: sum_ + F.octet_length(pair["key"]) + F.octet_length(pair["value"]) + F.lit(8)
    )


def _sentence(size: Column, limit: int) -> Column:
    from pyspark.sql import functions as F

    key = F.left(F.coalesce(F.col("key").cast("string"), F.lit("(none)")), F.lit(80))
    return F.format_string(f"a message of %d bytes is too large, key %s; the limit is {limit}", size, key)
