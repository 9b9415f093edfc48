"""Base class for sources that produce Arrow batches and do not use Spark's API.

An `ArrowSource` has a schema and an `ArrowReader`, which yields whole Arrow batches. Passwords are pickled inside the reader, never passed
as options that a plan could print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.jvm.arrow_source import ArrowReader, arrow_frame
from millstream.plan.components.component import REJECT
from millstream.plan.components.context import NodeContext
from millstream.plan.components.source import Source, SourceRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ArrowSource(Source):
    """A source whose rows are Arrow batches: it implements `output` and `reader`."""

    def reader(self, context: NodeContext) -> ArrowReader:
        """The reader for one run."""
        raise NotImplementedError

    def open(self, context: NodeContext) -> ArrowSourceRun:
        return ArrowSourceRun(self, context)

    @property
    def single_epoch(self) -> bool:
        """Spark's available-now trigger takes one epoch from a Python source."""
        return True


class ArrowSourceRun(SourceRun):
    """Reads an `ArrowReader` as a stream."""

    def __init__(self, source: ArrowSource, context: NodeContext) -> None:
        super().__init__(context)
        self.arrow_source = source

    def open_reader(self, spark: SparkSession) -> tuple[ArrowReader, pa.Schema]:
        """The reader, and the schema of its batches."""
        schema = self.context.schema if self.context.schema is not None else self.arrow_source.output()
        assert schema is not None, "a source without `output` overrides `open_reader` or `discover`"
        return self.arrow_source.reader(self.context), schema

    def read(self, spark: SparkSession) -> DataFrame:
        reader, schema = self.open_reader(spark)
        frame = arrow_frame(spark, reader, schema, self.context.name, self.context.directory)
        return frame.selectExpr("*", f"CAST(NULL AS struct<raw: string, error: string>) AS {REJECT}") if self.context.isolate else frame
