"""Deduplication: one row per key and span of time.

Over rows that are only added, an operator with state decides each row once, when the watermark has passed it. Over rows that change, the
kept rows of a key are a function of all its rows: they are sorted, and the first of each span is taken, in one expression of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.keyed.keys import flat_key_problems, split_null_keys
from millstream.keyed.operator import Keyed
from millstream.keyed.state_reader import readable_state
from millstream.plan.changelog import OP, OPS, SEQUENCE, op_of, table_of
from millstream.plan.components import ONCE, NodeContext, Origins, Problem, Transform, unchanged
from millstream.plan.expressions import quote_column
from millstream.plan.options import Columns, Duration
from millstream.sql.expressions import only_schema
from millstream.worker.deduplication import KEPT, Deduplication
from millstream.worker.output_batches import SIDE, OutputShape
from millstream.worker.table_runner import TableRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Dedup(Transform):
    """Keeps the first row of each key by event time and drops the others up to `within` after it; then keeps the next one, and so on.

    A row is emitted when the watermark has passed its time, so the result depends neither on the order of arrival nor on epoch boundaries.
    Rows older than the watermark are late: dropped, or rejects with `on_error`. Rows with the same key and time are ordered by `_seq` if
    there is such a column, then by the other columns.

    Over a changelog, or over another node that keeps state, the result is kept up to date as SQL is (`docs/sql.md`): no row is late, and
    when a kept row is deleted, or another one comes before it, the rows of its key are decided again. The result is a changelog.
    """

    type: ClassVar[str] = "dedup"
    shaped_by: ClassVar[frozenset[str]] = frozenset()
    summary: ClassVar[str] = "Keep one row per key and span of event time."
    example: ClassVar[str] = """
        once:
          type: dedup
          from: clicks
          key: [user]
          within: 1d
    """
    expensive: ClassVar[bool] = True
    side_column: ClassVar[str] = SIDE

    key: Annotated[Columns, Field(min_length=1)]
    """Rows with equal values in these columns are duplicates. Not null, and neither floats nor nested values."""
    within: Duration
    """How long after a kept row others of its key are dropped."""
    buckets: int = Field(default=32, ge=1, le=10_000)
    """The number of buckets for keys; the state of a bucket is read and written as a whole. Fixed by the first start."""

    @property
    def stateful(self) -> bool:
        return True

    @property
    def incremental(self) -> bool:
        return self._over_changes or self._over_state

    @property
    def why_incremental(self) -> str:
        if self.final:
            return ONCE
        return "" if not self.incremental else "an input is a changelog" if self._over_changes else "rows of a node that keeps state"

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        schema = only_schema(inputs)
        if not self.incremental or schema is None:
            return schema
        table = table_of(schema)
        return table.append(pa.field(OP, pa.string())) if table is not None and not self.final else table

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return flat_key_problems(self.key, "key", inputs)

    def read_state(self, spark: SparkSession, url: str, node: str) -> Iterator[dict[str, Any]]:
        return readable_state(spark, url, node)

    def origins(self, inputs: Mapping[str, pa.Schema | None]) -> Origins | None:
        return unchanged(inputs)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        if context.relational or self.incremental:
            return self._apply_to_tables(frame, context)
        time = Keyed(frame, self.key, context, self.buckets).event_time
        if not time:
            raise RunError(Diagnostic("MS037", f"`{context.name}` needs event time", help="declare `event_time` on a node above it"))
        keyed = Keyed(frame, self.key, context, self.buckets, required=(time,))
        schema = keyed.schema
        ties = tuple(name for name in _ties(schema.names) if name not in {time, *self.key})
        function = Deduplication(time, ties, self.within.milliseconds * 1000)
        states = schema.append(pa.field(KEPT, pa.bool_()))
        with by_value():
            shape = OutputShape(schema, {}, context.isolate)
            return keyed.process(TableRunner(function, self.key, schema, states, shape, ()), False, shape.schema)

    def _apply_to_tables(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        """The kept rows of all rows."""
        from pyspark.sql import functions as F

        if not context.event_time:
            raise RunError(Diagnostic("MS037", f"`{context.name}` needs event time", help="declare `event_time` on a node above it"))
        columns = [name for name in frame.columns if name not in {*OPS, SEQUENCE}] if op_of(frame.columns) else frame.columns
        rows, _ = split_null_keys(frame.select(*map(quote_column, columns)), self.key, replace(context, isolate=False))
        ties = [quote_column(name) for name in _ties(columns) if name not in {context.event_time, *self.key}]
        place = ", ".join(_places(rows.select(*ties)))
        time = f"unix_micros({quote_column(context.event_time)})"
        row = f"struct({', '.join(map(quote_column, columns))})"
        entry = f"struct({time} AS at, struct({time}{', ' + place if place else ''}) AS place, {row} AS row)"
        ordered = (
            f"array_sort(collect_list({entry}), (a, b) -> CASE WHEN a.place < b.place THEN -1 WHEN a.place > b.place THEN 1 ELSE 0 END)"
        )
        later = f"size(kept) = 0 OR next.at >= element_at(kept, -1).at + {self.within.milliseconds * 1000}L"
        step = f"(kept, next) -> if({later}, concat(kept, array(next)), kept)"
        chosen = f"transform(aggregate({ordered}, slice(collect_list({entry}), 1, 0), {step}), each -> each.row) AS _kept"
        result = rows.groupBy(*[F.col(quote_column(name)) for name in self.key]).agg(F.expr(chosen)).selectExpr("inline(_kept)")
        return result if context.relational or self.final else result.withColumn(OP, F.lit("u"))


def _ties(names: Iterable[str]) -> list[str]:
    """The position in the source comes first."""
    return sorted(names, key=lambda name: name != SEQUENCE)


def _places(frame: DataFrame) -> Iterator[str]:
    """What rows with one key and time are ordered by, as SQL: their columns, nulls last. Nested values are ordered as text."""
    for name, kind in frame.dtypes:
        column = quote_column(name)
        nested = kind.startswith(("struct", "array", "map"))
        yield f"{column} IS NULL, {f'to_json({column})' if nested else column}"
