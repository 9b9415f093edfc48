"""Joins a stream with a table that is read as a whole, copied into memory, and read again when it is older than `refresh`. This needs no
state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import ValidationError

from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.components import NodeContext, Problem, ReadsAsTable, Source, SourceRun, TransformRun
from millstream.registry import Registry
from millstream.transforms.join.interval import columns
from millstream.transforms.join.matching import match_problems

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.transforms.join.join import Join


def schema_of(join: Join) -> pa.Schema | None:
    source = _source(join)
    return source.output() if isinstance(source, Source) else None


def problems(join: Join, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
    source = _source(join)
    if isinstance(source, Problem):
        return [source]
    found = [Problem(p.code, f"the table: {p.message}", f"table.{p.field}", p.help) for p in source.problems({}, directory)]
    return found + match_problems(join.matching, {"left": inputs.get(join.left), "right": source.output()})


class TableJoinRun(TransformRun):
    """Holds the last copy of the table."""

    def __init__(self, join: Join, context: NodeContext) -> None:
        super().__init__(join, context)
        self.join = join
        self._table: DataFrame | None = None
        self._read_at = 0.0

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql import functions as F

        join, frame = self.join, frames[self.join.left]
        table = self._current(frame.sparkSession)
        joined = frame.alias("left").join(F.broadcast(table).alias("right"), F.expr(join.matching.condition), join.kind)
        return joined.select(*columns(join, frame.columns, table.columns))

    def _current(self, spark: SparkSession) -> DataFrame:
        """The last copy of the table, or a new one when it is too old."""
        refresh = self.join.refresh
        if self._table is None or (refresh is not None and time.monotonic() - self._read_at >= refresh.seconds):
            # a copy, not a cached frame: Spark would reuse the old cache for the same plan
            with closing(self._source()) as source:
                assert isinstance(source, ReadsAsTable)
                self._table = spark.createDataFrame(source.table(spark).toArrow())
            self._read_at = time.monotonic()
        return self._table

    def _source(self) -> SourceRun:
        source = _source(self.join)
        if isinstance(source, Problem):
            raise RunError(Diagnostic(source.code, source.message))
        return source.open(self.context)


def _source(join: Join) -> Source | Problem:
    """The source that describes the table."""
    options = dict(join.table or {})
    registry, name = Registry.installed(), str(options.pop("type", ""))
    model = registry.find("source", name)
    if model is None:
        return Problem("MS010", f"the table has the unknown type `{name}`", "table.type", nearest(name, registry.types("source")))
    if not model.readable_as_table:
        return Problem("MS036", f"a `{name}` source cannot be read as a table", "table.type", "a `file` or `memory` source can")
    try:
        return model.model_validate(options)  # type: ignore[no-any-return]  # the registry gives classes of components
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return Problem("MS008", f"the table's `{place}`: {first['msg'].lower()}", f"table.{place}")
