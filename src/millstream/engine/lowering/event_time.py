"""Event time on Spark: converts the column to a timestamp, rejects unusable times, and sets the watermark.

A row is rejected when its time is null, before 1970 (Spark's first watermark is 1970, so the row would always be late) or too far ahead of
the wall clock (it would make every other row late). The node's `on_error` applies. The wall clock is the epoch's time in Spark's offset
log, so that a repeated epoch rejects the same rows.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StringType, TimestampNTZType, TimestampType

from millstream.plan.components import REJECT
from millstream.plan.event_time import EventTime
from millstream.plan.nodes import Node
from millstream.plan.tracing import TRACED
from millstream.sql.catalyst.bridge import WATERMARK
from millstream.worker import marks

_HELD = "36500 days"
"""A delay that keeps the watermark at 1970."""
_TICKS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def with_event_time(frame: DataFrame, node: Node, clock: str = "", watched: bool = False) -> DataFrame:
    """The node's rows with their event time as a timestamp; unusable ones become rejects or fail.

    `watched`: the latest time of every epoch is checked anyway (`Watermarks.refuse`), so rows are not compared with the clock. The epoch's
    time would be a constant in Spark's generated code, and Spark would compile that code again for every epoch.
    """
    event_time = node.options.event_time
    if event_time is None:
        return frame
    column = F.col(f"`{event_time.column}`")
    time = _time(event_time, column, frame.schema[event_time.column].dataType)
    now = None if watched and not node.isolates else F.lit(clock).cast("timestamp") if clock else F.current_timestamp()
    fine = _fine(event_time, time, now)
    if not node.isolates:
        # only the value: a sentence here would enlarge the generated code that runs for every row; `unusable` builds the text
        refusal = F.raise_error(
            F.concat(F.lit(marks.refusal("MS072", node.name, "event_time")), F.coalesce(column.cast("string"), F.lit("null")))
        )
        return frame.withColumn(event_time.column, F.when(fine, time).otherwise(refusal.cast("timestamp")))
    row = F.to_json(F.struct(*[f"`{name}`" for name in frame.columns if name not in (REJECT, TRACED)]), {"ignoreNullFields": "false"})
    reject = F.struct(row.alias("raw"), _reason(event_time, column, time).alias("error"))
    outcome = F.when(F.col(REJECT).isNotNull(), F.col(REJECT)).when(~F.coalesce(fine, F.lit(False)), reject)
    return frame.withColumns({REJECT: outcome, event_time.column: time})


def with_watermark(frame: DataFrame, node: Node, delay_ms: int, held: bool) -> DataFrame:
    """The frame with Spark's watermark. The results of a stateful node already have one: there the column is renamed to their time."""
    assert node.options.event_time is not None
    column = node.options.event_time.column
    if node.stateful:
        return frame.withColumn(column, F.col(f"`{column}`").alias(column, metadata={WATERMARK: delay_ms}))
    return frame.withWatermark(column, _HELD if held else f"{delay_ms} milliseconds")


def watermark_id(frame: DataFrame) -> str:
    """Spark's identifier of the last watermark that was set."""
    plan = frame._jdf.queryExecution().analyzed()
    return str(plan.nodeId().toString()) if plan.getClass().getSimpleName() == "EventTimeWatermark" else ""


def _time(event_time: EventTime, column: Column, kind: DataType) -> Column:
    if event_time.unit and not isinstance(kind, TimestampType):
        return F.timestamp_micros(F.expr(f"try_cast(`{event_time.column}` * {_TICKS[event_time.unit]}D AS BIGINT)"))
    if isinstance(kind, StringType):
        return F.try_to_timestamp(column, F.lit(event_time.format)) if event_time.format else F.try_to_timestamp(column)
    return column.cast("timestamp") if isinstance(kind, DateType | TimestampNTZType | TimestampType) else column


def _reason(event_time: EventTime, column: Column, time: Column) -> Column:
    name, text = event_time.column, column.cast("string")
    way = "" if event_time.format or event_time.unit else "; `event_time: {format: …}` says how it is written"
    return (
        F.when(column.isNull(), F.lit(f"the event time `{name}` is null"))
        .when(time.isNull(), F.concat(F.lit(f"the event time `{name}` cannot be read: "), text, F.lit(way)))
        .when(time < F.lit("1970-01-01").cast("timestamp"), F.concat(F.lit(f"the event time `{name}` is before 1970: "), text))
        .otherwise(F.concat(F.lit(f"the event time `{name}` is more than {event_time.max_ahead} ahead of the clock: "), text))
    )


def _fine(event_time: EventTime, time: Column, now: Column | None) -> Column:
    """Compares whole numbers: adding an interval to the epoch's time would use the calendar, once per row."""
    micros = F.unix_micros(time)
    if now is None:
        return micros >= 0
    return (micros >= 0) & (micros <= F.unix_micros(now) + event_time.max_ahead.milliseconds * 1000)
