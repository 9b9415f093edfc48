"""Base class for sources that produce Arrow batches and do not use Spark's API.

An `ArrowSource` has a schema and an `ArrowReader`, which yields whole Arrow batches. Passwords are pickled inside the reader, never passed
as options that a plan could print.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.jvm.arrow_source import ArrowReader, Offset, arrow_frame
from millstream.plan.components.component import REJECT
from millstream.plan.components.context import NodeContext
from millstream.plan.components.source import Source, SourceRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ArrowSource(Source):
    """A source whose rows are Arrow batches: it implements `output` and `reader`, and `commit` if its system must know what is done."""

    def reader(self, context: NodeContext) -> ArrowReader:
        """The reader for one run."""
        raise NotImplementedError

    def commit(self, offset: Offset, context: NodeContext) -> None:
        """All rows up to the offset are committed: delete messages, or store the offset in the system. Called on the driver, in a thread
        of its own; a failure is noted, and this offset or a later one is reported again.
        """

    def open(self, context: NodeContext) -> ArrowSourceRun:
        overridden = type(self).commit is not ArrowSource.commit
        return CommittingSourceRun(self, context) if overridden else ArrowSourceRun(self, context)

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


class CommittingSourceRun(ArrowSourceRun):
    """Tells the source what is committed."""

    def common_offset(self, several: Sequence[Any]) -> Offset | None:
        """The offset that all queries have reached: the smallest, number by number; None where offsets have no order."""
        offsets = [parse_offset(each) for each in several]
        first = offsets[0]
        if all(each == first for each in offsets):
            return first
        if any(each.keys() != first.keys() for each in offsets) or not all(isinstance(n, int) for each in offsets for n in each.values()):
            return None
        return {name: min(each[name] for each in offsets) for name in first}

    def on_commit(self, spark: SparkSession, offset: Any) -> None:
        self.arrow_source.commit(parse_offset(offset), self.context)


def parse_offset(offset: Any) -> Offset:
    """An offset as the reader made it: Spark's log has it as text."""
    found: Offset = json.loads(offset) if isinstance(offset, str) else offset
    return found
