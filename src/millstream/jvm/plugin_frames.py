"""Passes the batches of a frame through a plugin on Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.jvm.pickling import by_value
from millstream.registry.loading import own_modules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Run = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def schema_of(frame: DataFrame) -> pa.Schema:
    """The schema of a frame's batches."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema: pa.Schema = to_arrow_schema(frame.schema)
    return schema


def as_spark_has_it(schema: pa.Schema) -> pa.Schema:
    """The schema with the types that Spark's workers use for it."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    found: pa.Schema = to_arrow_schema(from_arrow_schema(schema, prefer_timestamp_ntz=True))
    return found


def map_batches(frame: DataFrame, run: Run, schema: pa.Schema | None, plugin: type, directory: Path) -> DataFrame:
    """The batches that `run` makes of those of the frame. Without a schema they have that of the frame. The code of the plugin travels by
    value: its own package, and the modules beside the pipeline.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    kinds: Any = frame.schema if schema is None else from_arrow_schema(schema, prefer_timestamp_ntz=True)
    call: Any = run  # Spark's stubs ask for an Iterator, which every iterable here is
    with by_value(*own_modules(plugin), function=plugin, directory=directory):
        return frame.mapInArrow(call, kinds)
