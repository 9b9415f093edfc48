"""Turns a reader of Arrow batches into a Spark DataFrame.

The reader is plain data that is pickled: a process on the driver asks for offsets, and workers read the parts. An error raised there
reaches the driver with its code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from millstream.jvm.pickling import by_value
from millstream.registry.loading import own_modules
from millstream.worker.remote_errors import carry_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Offset = dict[str, Any]


class ArrowReader(Protocol):
    """Reads the rows between two offsets, in parts."""

    def first(self) -> Offset:
        """The offset before the first row."""
        ...

    def latest(self) -> Offset:
        """The end offset of the next epoch. The reader itself limits the size of an epoch."""
        ...

    def parts(self, start: Offset, end: Offset) -> list[Any]:
        """The parts between two offsets, which are read in parallel. The same offsets give the same rows."""
        ...

    def read(self, part: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a part, on a worker."""
        ...


def arrow_frame(
    spark: SparkSession, source: ArrowReader, schema: pa.Schema, node: str, directory: Path, *, streaming: bool = True
) -> DataFrame:
    """A reader as a frame: as a stream, or as all current rows."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema

    class Stream(DataSourceStreamReader):
        def initialOffset(self) -> Offset:  # noqa: N802 — Spark's name
            with carry_errors(node):
                return source.first()

        def latestOffset(self) -> Offset:  # noqa: N802 — Spark's name
            with carry_errors(node):
                return source.latest()

        def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
            with carry_errors(node):
                return [InputPartition(part) for part in source.parts(start, end)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            with carry_errors(node):
                yield from source.read(partition.value)

    class Batch(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            with carry_errors(node):
                return [InputPartition(part) for part in source.parts(source.first(), source.latest())]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            with carry_errors(node):
                yield from source.read(partition.value) if partition is not None else ()

    class Rows(DataSource):
        @classmethod
        def name(cls) -> str:
            return f"millstream_{re.sub(r'[^A-Za-z0-9]', '_', node)}"

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 — Spark's name
            return Stream()

        def reader(self, schema: Any) -> DataSourceReader:
            return Batch()

    with by_value(*own_modules(type(source)), function=type(source), directory=directory):
        spark.dataSource.register(Rows)
    reader: Any = spark.readStream if streaming else spark.read
    frame: DataFrame = reader.format(Rows.name()).schema(from_arrow_schema(schema, prefer_timestamp_ntz=True)).load()
    return frame
