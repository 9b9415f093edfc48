"""Rows from Python as a stream: written to the checkpoint once, at the first start, and read from there.

So a killed run continues with the same rows. Every batch, or every `rows_per_epoch` rows, is a file, and every file is an epoch.
"""

from __future__ import annotations

import base64
import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from millstream.clients.storage import Storage, is_local
from millstream.connectors.memory.rows import plain_schema, to_plain, to_table, to_text
from millstream.plan import types
from millstream.plan.components import REJECT, NodeContext, Progress, Source, SourceRun
from millstream.plan.options import SchemaMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDER, _DONE = "rows", "rows.json"


def _decode(value: Any) -> Any:
    return pa.ipc.open_stream(base64.b64decode(value)).read_all().combine_chunks().to_batches()[0] if isinstance(value, str) else value


def _encode(batch: pa.RecordBatch) -> str:
    """Arrow's stream format, as text: plans that contain batches can be stored too."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, batch.schema) as stream:
        stream.write_batch(batch)
    return base64.b64encode(buffer.getvalue()).decode()


Batch = Annotated[pa.RecordBatch, BeforeValidator(_decode), PlainSerializer(_encode, return_type=str), WithJsonSchema({"type": "string"})]


class MemorySource(Source):
    """Given rows: written in the pipeline, or passed by a Python program. They are copied to the checkpoint at the first start; a
    restart continues with that copy.
    """

    type: ClassVar[str] = "memory"
    keyless: ClassVar[bool] = True
    readable_as_table: ClassVar[bool] = True
    shaped_by: ClassVar[frozenset[str]] = frozenset({"rows", "batches", "schema", "columns"})
    summary: ClassVar[str] = "Rows written in the pipeline or passed by Python."
    example: ClassVar[str] = """
        orders:
          type: memory
          rows:
            - {id: 1, user: ann, amount: 2000}
            - {id: 2, user: bob, amount: 5}
          schema: {id: int64, user: string, amount: "decimal(18,2)"}
    """

    rows: tuple[dict[str, Any], ...] = ()
    """The rows: column → value."""
    batches: tuple[Batch, ...] = ()
    """Arrow batches, instead of rows. For Python programs; each becomes an epoch."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type. Default: found in the values."""
    rows_per_epoch: int | None = Field(default=None, ge=1)
    """The number of rows per epoch. Default: one epoch, or one per batch."""

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, data: Any) -> Any:
        """Times and decimals are stored as texts, with their schema: so the plan can be written to YAML and back."""
        rows = data.get("rows") if isinstance(data, dict) else None
        if not isinstance(rows, list | tuple) or not all(isinstance(row, dict) for row in rows):
            return data
        texts = tuple(to_text(row) for row in rows)
        if list(texts) == list(rows):
            return data
        given = data.get("schema", data.get("columns"))
        found = {} if given is not None else {"schema": to_table(rows, None).schema}
        return {**data, "rows": texts, **found}

    @model_validator(mode="after")
    def _check_rows(self) -> MemorySource:
        if self.rows and self.batches:
            raise ValueError("give `rows` or `batches`, not both")
        if not self.rows and not self.batches and not self.columns:
            raise ValueError("without rows, `schema` must name the columns")
        self.as_table()
        return self

    @property
    def expensive(self) -> bool:
        return False

    @property
    def bounded(self) -> bool:
        return True

    @property
    def small(self) -> bool:
        return True

    def output(self) -> pa.Schema:
        if self.columns:
            return types.schema(self.columns)
        return plain_schema(self.batches[0].schema) if self.batches else self.as_table().schema

    def open(self, context: NodeContext) -> MemorySourceRun:
        return MemorySourceRun(self, context)

    @property
    def in_parts(self) -> bool:
        """Whether every part is a separate epoch."""
        return len(self.batches) > 1 or self.rows_per_epoch is not None

    def as_table(self) -> pa.Table:
        schema = types.schema(self.columns) if self.columns else None
        if not self.batches:
            return to_table(self.rows, schema)
        table = to_plain(pa.Table.from_batches(self.batches))
        return table.cast(schema) if schema else table

    def parts(self) -> Iterator[pa.Table]:
        table, start = self.as_table(), 0
        sizes = [batch.num_rows for batch in self.batches] or [table.num_rows]
        if self.rows_per_epoch:
            sizes = [min(self.rows_per_epoch, table.num_rows - at) for at in range(0, table.num_rows, self.rows_per_epoch)] or [0]
        for size in sizes:
            yield table.slice(start, size)
            start += size


class MemorySourceRun(SourceRun):
    """Reads the copy of the rows in the checkpoint."""

    def __init__(self, source: MemorySource, context: NodeContext) -> None:
        super().__init__(context)
        self.source = source

    def read(self, spark: SparkSession) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        source, storage = self.source, self.context.storage
        _keep(list(source.parts()), storage)
        reader = spark.readStream.format("parquet").schema(from_arrow_schema(source.output(), prefer_timestamp_ntz=True))
        if source.in_parts:
            reader = reader.option("maxFilesPerTrigger", 1)
        frame = reader.load(f"{storage.url}/{_FOLDER}")
        return frame.selectExpr("*", f"CAST(NULL AS struct<raw: string, error: string>) AS {REJECT}") if self.context.isolate else frame

    def table(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.source.as_table())

    def is_exhausted(self, offset: Any) -> bool:
        """Spark's file source counts its epochs from 0; every part is one of them."""
        epochs = sum(1 for _ in self.source.parts()) if self.source.in_parts else 1
        return _number(offset) + 1 >= epochs

    def rows_read(self, progress: Progress) -> int:
        sizes = [part.num_rows for part in self.source.parts()]
        return sum(sizes[_number(progress.start) + 1 : _number(progress.end) + 1])


def _number(offset: Any) -> int:
    """The epoch in an offset of Spark's file source; -1 before the first."""
    parsed = json.loads(offset) if isinstance(offset, str) else offset
    return int(parsed["logOffset"]) if parsed else -1


def _keep(parts: list[pa.Table], storage: Storage) -> None:
    """Write the parts once. The marker comes last: an unfinished copy is written again."""
    import pyarrow.parquet as pq

    if storage.read(_DONE) is not None:
        return
    newest = time.time()
    for number, part in enumerate(parts):
        buffer = io.BytesIO()
        pq.write_table(part, buffer, coerce_timestamps="us")
        path = f"{_FOLDER}/{number:08d}.parquet"
        storage.put(path, buffer.getvalue())
        if is_local(storage.url):  # Spark reads files in the order of their times, to the millisecond
            moment = newest - 0.002 * (len(parts) - number)
            os.utime(Path(storage.url) / path, (moment, moment))
    storage.put_once(_DONE, json.dumps({"parts": len(parts)}).encode())
