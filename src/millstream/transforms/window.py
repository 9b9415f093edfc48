"""Aggregates per key and window of event time with Spark's operator: each result once and final, or early and corrected.

Windows of days in a time zone are computed here: start and end by the local calendar, with the end marked as event time, so that Spark
closes them like its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import pyarrow as pa

from millstream.keyed.keys import key_problems, split_null_keys, with_rejects
from millstream.plan.changelog import OP
from millstream.plan.components import NodeContext, Origins, OutputMode, Problem, Windowed, of_expressions
from millstream.plan.event_time import TIMESTAMP
from millstream.plan.expressions import quote_column
from millstream.plan.options import Columns
from millstream.plan.windows import SessionWindow, SlidingWindow, TumblingWindow, Window, closes, local_windows
from millstream.sql.catalyst.bridge import Bridge
from millstream.sql.expressions import only_schema
from millstream.sql.totals import Aggregates, aggregate_problems, columns_of, output_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WINDOW = "_window"
_EDGES = ("window_start", "window_end")


class WindowAggregate(Windowed):
    """Aggregates rows per key and window of event time. The result has the key's columns, `window_start`, `window_end` and the
    aggregates. A window closes when the watermark passes its end; at the end of a bounded input all open windows close.

    Every aggregate of Spark SQL can be used, with `FILTER (WHERE …)`; `first` and `last` use event time, `count(DISTINCT …)` is exact, and
    `top_k(value, k)` returns the largest values.
    """

    type: ClassVar[str] = "window"
    summary: ClassVar[str] = "Count and add up per key and window of event time."
    example: ClassVar[str] = """
        per_minute:
          type: window
          from: clicks
          key_by: [user]
          window: {type: tumbling, size: 1m}
          aggregate: {total: sum(amount), n: count(*)}
    """

    key_by: Columns = ()
    """The columns of the key. Default: all rows belong to one group."""
    window: Window
    """`{type: tumbling, size: 1m}`, `{type: sliding, size: 1h, slide: 5m}` or `{type: session, gap: 30m}`."""
    aggregate: Aggregates
    """Name → aggregate, such as `total: sum(amount)`."""
    emit: Literal["on_close", "updates"] = "on_close"
    """`on_close`: each result once, when its window has closed. `updates`: early results too, as a changelog (`_op`) that later rows
    correct; the key and the window identify a result. Over a changelog, or over another node that keeps state, `updates` are kept up to
    date as SQL is: no row is late, and no window is dropped."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def needs_event_time(self) -> bool:
        return True

    @property
    def incremental(self) -> bool:
        return self.emit == "updates" and (self._over_changes or self._over_state)

    @property
    def why_incremental(self) -> str:
        return "" if not self.incremental else "an input is a changelog" if self._over_changes else "windows over a node that keeps state"

    def returned_once(self) -> None:
        """`emit: updates` asks for changes."""

    @property
    def waits(self) -> bool:
        return not self.incremental

    @property
    def output_mode(self) -> OutputMode:
        return "append" if self.emit == "on_close" or self.incremental else "update"

    def closes(self, input_name: str, event_time: str) -> str:
        return closes(self.window, quote_column(event_time))

    @property
    def result_key(self) -> tuple[str, ...]:
        return (*self.key_by, *_EDGES)

    def reads(self, input_name: str, isolating: bool) -> int:
        return 2 if isolating and self.key_by else 1

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        edges = [pa.field(name, TIMESTAMP) for name in _EDGES]
        schema = output_of(self.key_by, edges, self.aggregate, only_schema(inputs))
        return schema.append(pa.field(OP, pa.string())) if schema is not None and self.emit == "updates" else schema

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        found = key_problems(self.key_by, "key_by", inputs)
        found += aggregate_problems(self.aggregate, (*self.key_by, *_EDGES, OP), only_schema(inputs))
        if isinstance(self.window, SessionWindow) and self.emit == "updates" and not self.incremental:
            found.append(Problem("MS036", "a session has no early results: its window is not known before it ends", "emit", "leave it out"))
        return found

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        keys, totals = of_expressions({key: key for key in self.key_by}, inputs), of_expressions(self.aggregate, inputs, "AGGREGATION")
        return {**keys, **totals} if keys is not None and totals is not None else None

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        ((_, frame),) = frames.items()
        rows, rejects = split_null_keys(frame, self.key_by, context)
        time = quote_column(context.event_time)
        rows, groups = self._assign_windows(rows, time)
        columns = columns_of(Bridge(frame.sparkSession), self.aggregate, time, context.aggregates)
        totals = rows.groupBy(*[F.col(quote_column(key)) for key in self.key_by], *groups).agg(*columns)
        edges = _EDGES if _EDGES[0] in totals.columns else (f"{_WINDOW}.start AS {_EDGES[0]}", f"{_WINDOW}.end AS {_EDGES[1]}")
        result = totals.selectExpr(*map(quote_column, self.key_by), *edges, *map(quote_column, self.aggregate))
        if context.relational:
            return result
        result = result.withColumn(OP, F.lit("u")) if self.emit == "updates" else result
        return with_rejects(result, rejects, context)

    def _assign_windows(self, rows: DataFrame, time: str) -> tuple[DataFrame, list[Column]]:
        """The rows, and the columns with their window."""
        from pyspark.sql import functions as F

        window = self.window
        if isinstance(window, SessionWindow):
            # Spark refuses sessions without a key; a constant would be optimised away
            alone = [] if self.key_by else [F.expr(f"unix_seconds({time}) * 0").alias("_all")]
            return rows, [F.expr(f"session_window({time}, {window.gap_sql})").alias(_WINDOW), *alone]
        if window.time_zone:
            return _local(rows, window, time), [F.col(name) for name in _EDGES]
        lengths = (window.size.milliseconds, window.step_ms, window.offset.milliseconds)
        spans = ", ".join(f"'{length} milliseconds'" for length in lengths)
        return rows, [F.expr(f"window({time}, {spans})").alias(_WINDOW)]


def _local(rows: DataFrame, window: TumblingWindow | SlidingWindow, time: str) -> DataFrame:
    from pyspark.sql import functions as F

    pairs = ", ".join(f"named_struct('start', {start}, 'end', {end})" for start, end in local_windows(window, time))
    spread = rows.select("*", F.explode(F.expr(f"array({pairs})")).alias(_WINDOW)).where(f"{time} < {_WINDOW}.end")
    end = F.col(f"{_WINDOW}.end").alias(_EDGES[1], metadata={"spark.watermarkDelayMs": 0})
    return spread.select("*", F.col(f"{_WINDOW}.start").alias(_EDGES[0]), end).drop(_WINDOW)
