"""Rows from Python, as a stream like any other: written into the checkpoint once, at the first start, and read from there.

So a run that is killed goes on with the rows it began with. Every batch, or every `rows_per_epoch` rows, is a file, and every file an
epoch.
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
from millstream.plan.components import REJECT, NodeContext, Progress, Source
from millstream.plan.options import SchemaMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDER, _DONE = "rows", "rows.json"


def _decoded(value: Any) -> Any:
    return pa.ipc.open_stream(base64.b64decode(value)).read_all().combine_chunks().to_batches()[0] if isinstance(value, str) else value


def _encoded(batch: pa.RecordBatch) -> str:
    """Arrow's own stream format, as text: plans that hold batches can be stored too."""
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, batch.schema) as stream:
        stream.write_batch(batch)
    return base64.b64encode(buffer.getvalue()).decode()


Batch = Annotated[pa.RecordBatch, BeforeValidator(_decoded), PlainSerializer(_encoded, return_type=str), WithJsonSchema({"type": "string"})]


class MemorySource(Source):
    """Rows at hand: a few written into the pipeline, or what a Python program has. They are copied into the checkpoint when the
    pipeline first starts; a restart goes on with that copy.
    """

    type: ClassVar[str] = "memory"
    shaped_by: ClassVar[frozenset[str]] = frozenset({"rows", "batches", "schema", "columns"})
    summary: ClassVar[str] = "Rows written in the pipeline or handed over by Python."
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
    """Cut the rows into epochs of this size. Default: one epoch, or one per batch."""

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, data: Any) -> Any:
        """Times and decimals are kept as texts, next to the schema that they had: so the plan can be written to YAML and back."""
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
    def _fitting(self) -> MemorySource:
        if self.rows and self.batches:
            raise ValueError("give `rows` or `batches`, not both")
        if not self.rows and not self.batches and not self.columns:
            raise ValueError("without rows, `schema` must name the columns")
        self._table()
        return self

    @property
    def dear(self) -> bool:
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
        return plain_schema(self.batches[0].schema) if self.batches else self._table().schema

    def read(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        _keep(list(self._parts()), context.storage)
        schema = from_arrow_schema(self.output(), prefer_timestamp_ntz=True)
        reader = spark.readStream.format("parquet").schema(schema)
        if len(self.batches) > 1 or self.rows_per_epoch:
            reader = reader.option("maxFilesPerTrigger", 1)
        frame = reader.load(f"{context.storage.url}/{_FOLDER}")
        return frame.selectExpr("*", f"CAST(NULL AS struct<raw: string, error: string>) AS {REJECT}") if context.isolate else frame

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        return spark.createDataFrame(self._table())

    def exhausted(self, offset: Any, context: NodeContext | None = None) -> bool:
        """Spark's file source counts its epochs from 0; every part is one of them."""
        epochs = sum(1 for _ in self._parts()) if len(self.batches) > 1 or self.rows_per_epoch else 1
        return _number(offset) + 1 >= epochs

    def rows_read(self, progress: Progress, context: NodeContext) -> int:
        sizes = [part.num_rows for part in self._parts()]
        return sum(sizes[_number(progress.start) + 1 : _number(progress.end) + 1])

    def _table(self) -> pa.Table:
        schema = types.schema(self.columns) if self.columns else None
        if not self.batches:
            return to_table(self.rows, schema)
        table = to_plain(pa.Table.from_batches(self.batches))
        return table.cast(schema) if schema else table

    def _parts(self) -> Iterator[pa.Table]:
        table, start = self._table(), 0
        sizes = [batch.num_rows for batch in self.batches] or [table.num_rows]
        if self.rows_per_epoch:
            sizes = [min(self.rows_per_epoch, table.num_rows - at) for at in range(0, table.num_rows, self.rows_per_epoch)] or [0]
        for size in sizes:
            yield table.slice(start, size)
            start += size


def _number(offset: Any) -> int:
    """The epoch that an offset of Spark's file source names; -1 before the first."""
    parsed = json.loads(offset) if isinstance(offset, str) else offset
    return int(parsed["logOffset"]) if parsed else -1


def _keep(parts: list[pa.Table], storage: Storage) -> None:
    """Write the parts once. The marker comes last: half a copy is written anew."""
    import pyarrow.parquet as pq

    if storage.read(_DONE) is not None:
        return
    newest = time.time()
    for number, part in enumerate(parts):
        buffer = io.BytesIO()
        pq.write_table(part, buffer, coerce_timestamps="us")
        path = f"{_FOLDER}/{number:08d}.parquet"
        storage.put(path, buffer.getvalue())
        if is_local(storage.url):  # spark takes files in the order of their times, to the millisecond
            moment = newest - 0.002 * (len(parts) - number)
            os.utime(Path(storage.url) / path, (moment, moment))
    storage.put_once(_DONE, json.dumps({"parts": len(parts)}).encode())
