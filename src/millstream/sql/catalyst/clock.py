"""`now()` and the like mean the time of the epoch, so that a repeated epoch has the same rows: they become literals in the analysed plan.

The names of columns and the types stay. Names that only look like a clock (a column `current_date`, a text `'now()'`) are not clocks in the
plan. `unix_timestamp()` and `curdate()` are computed from the functions below. Spark 4.1 does not support the type of `current_time()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from millstream.sql.catalyst.bridge import Bridge, Expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def freeze(frame: DataFrame, time: str) -> DataFrame:
    """The frame with `yyyy-MM-dd HH:mm:ss.SSSSSS` as the current time; without a time, the frame as it is."""
    if not time:
        return frame
    bridge = Bridge(frame.sparkSession)
    plan = bridge.analysed_as_is(frame)
    return bridge.frame(bridge.with_expressions_everywhere(plan, _literals(bridge, time))) if bridge.uses_clock(plan) else frame


def _literals(bridge: Bridge, time: str) -> Iterator[tuple[Expression, Expression]]:
    """Every function that reads the clock, as it is in an analysed plan, with its value."""
    zone = bridge.option(bridge.time_zone)
    for name in ("CurrentTimestamp", "Now"):
        yield bridge.make(name), bridge.expression(f"TIMESTAMP '{time}'")
    yield bridge.make("CurrentDate", zone), bridge.expression(f"DATE '{time[:10]}'")
    yield bridge.make("LocalTimestamp", zone), bridge.expression(f"TIMESTAMP_NTZ '{time}'")
