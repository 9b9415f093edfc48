"""Rows into Spark: a small protocol for what a source gives, and Spark's Python source around it.

A feed is plain data that travels: offsets are asked for in a process beside the driver, parts are read on the workers, whole Arrow batches
at a time. Passwords travel inside it, and never as an option that a plan could print. What fails over there comes home with its code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from millstream.observe.remote_errors import carrying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Offset = dict[str, Any]


class Feed(Protocol):
    """What can be read, between two offsets, in parts."""

    def first(self) -> Offset: ...
    def latest(self) -> Offset: ...
    def parts(self, start: Offset, end: Offset) -> list[Any]: ...
    def read(self, part: Any) -> Iterator[pa.RecordBatch]: ...


def stream(spark: SparkSession, feed: Feed, schema: pa.Schema, node: str, streaming: bool = True) -> DataFrame:
    """The feed as a frame: as a stream, or all that is there now."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema

    class Stream(DataSourceStreamReader):
        def initialOffset(self) -> Offset:  # noqa: N802 — Spark's name
            with carrying(node):
                return feed.first()

        def latestOffset(self) -> Offset:  # noqa: N802 — Spark's name
            with carrying(node):
                return feed.latest()

        def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
            with carrying(node):
                return [InputPartition(part) for part in feed.parts(start, end)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            with carrying(node):
                yield from feed.read(partition.value)

    class Batch(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            with carrying(node):
                return [InputPartition(part) for part in feed.parts(feed.first(), feed.latest())]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            with carrying(node):
                yield from feed.read(partition.value) if partition is not None else ()

    class Rows(DataSource):
        @classmethod
        def name(cls) -> str:
            return f"millstream_{re.sub(r'[^A-Za-z0-9]', '_', node)}"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 — Spark's name
            return Stream()

        def reader(self, schema: Any) -> DataSourceReader:
            return Batch()

    spark.dataSource.register(Rows)
    reader: Any = spark.readStream if streaming else spark.read
    frame: DataFrame = reader.format(Rows.name()).schema(from_arrow_schema(schema, prefer_timestamp_ntz=True)).load()
    return frame
