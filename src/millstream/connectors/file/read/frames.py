"""Reads files as a stream with exactly the columns of the schema, by name, and with isolated rejects.

Spark reads CSV by position and assumes that every file has the same columns. Here the header of one file gives the position of each column,
and a file with another header fails instead of mixing up columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.connectors.file.formats import READING, ROWS_CAN_BE_BAD
from millstream.connectors.file.read.headers import require_columns
from millstream.connectors.file.read.layout import FileLayout, conditions, from_directory
from millstream.connectors.file.read.paths import InputPath
from millstream.plan.components import REJECT
from millstream.plan.expressions import quote_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

RAW = "_millstream_raw"
_REJECT_TYPE = "struct<raw: string, error: string>"
_ERROR = "the row does not fit the format or the schema"


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read."""

    format: str
    schema: pa.Schema
    place: InputPath
    layout: FileLayout
    options: dict[str, str]
    recursive: bool
    isolate: bool
    sample: str
    """A sample file; empty when there is none yet."""
    max_files: int | None = None
    node: str = ""
    streaming: bool = True
    """Whether files are read as they arrive, or only the current ones."""


def stream(spark: SparkSession, reading: Reading) -> DataFrame:
    """The rows, and `REJECT` when rejects are isolated."""
    from pyspark.sql.pandas.types import from_arrow_schema

    wanted = from_arrow_schema(reading.schema, prefer_timestamp_ntz=True)
    isolating = reading.isolate and reading.format in ROWS_CAN_BE_BAD
    there = _columns_of_files(spark, reading, wanted)
    frame: DataFrame = _reader(spark, reading, there, isolating).load(reading.place.pattern)
    for condition in conditions(reading.layout, reading.place, reading.recursive):
        frame = frame.where(condition)
    if isolating:
        frame = _all_columns_read(frame, [*there.names, RAW])
    bad = f"{RAW} IS NOT NULL" if isolating else ""
    columns = [_column(field, there, reading.layout, bad) for field in wanted]
    return frame.selectExpr(*columns, *([_reject(bad)] if reading.isolate else []))


def _reader(spark: SparkSession, reading: Reading, there: StructType, isolating: bool) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([*there.fields, StructField(RAW, StringType())]) if isolating else there
    options = dict(READING.get(reading.format, {}))
    # a path is always listed recursively: `conditions` selects the directories. Spark would ignore files that
    # arrive with an old date after a week; only the user may allow that
    options |= {"recursiveFileLookup": "true", "maxFileAge": "36500d"}
    if reading.format in ROWS_CAN_BE_BAD:
        options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW} if isolating else {"mode": "FAILFAST"}
    if reading.format == "csv":
        options["enforceSchema"] = "false"
    if reading.max_files is not None:
        options["maxFilesPerTrigger"] = str(reading.max_files)
    reader: Any = spark.readStream if reading.streaming else spark.read
    return reader.format(reading.format).schema(schema).options(**options | reading.options)


def _columns_of_files(spark: SparkSession, reading: Reading, wanted: StructType) -> StructType:
    """The columns of the files: the selected ones; for CSV with a header, the header's columns in its order."""
    from pyspark.sql.types import StringType, StructField, StructType

    options = READING.get(reading.format, {}) | reading.options
    if reading.format != "csv" or options.get("header") != "true" or not reading.sample:
        return StructType([StructField(field.name, field.dataType) for field in wanted])
    header = spark.read.format("csv").options(**options).load(reading.sample).columns
    if not header:
        return StructType([StructField(field.name, field.dataType) for field in wanted])
    require_columns(header, wanted.names, reading.layout.directories, reading.sample, reading.node)
    types = {field.name.lower(): field.dataType for field in wanted}
    return StructType([StructField(name, types.get(name.lower(), StringType())) for name in header])


def _all_columns_read(frame: DataFrame, names: list[str]) -> DataFrame:
    """Spark parses only the columns that a reader selects, and a row is invalid only in a parsed column: two readers would disagree. A
    condition that is always true, but refers to every column, makes them agree. It costs nothing: the first half decides.
    """
    unlikely = " AND ".join(f"{quote_column(name)} IS NULL" for name in names)
    return frame.where(f"spark_partition_id() >= 0 OR ({unlikely})")


def _column(field: Any, there: StructType, layout: FileLayout, bad: str) -> str:
    kind, present = field.dataType.simpleString(), {name.lower() for name in there.names}
    value = quote_column(field.name) if field.name.lower() in present else f"CAST(NULL AS {kind})"
    if field.name in layout.directories:
        value = f"coalesce({value}, {from_directory(field.name, kind)})"
    return f"{f'CASE WHEN NOT ({bad}) THEN {value} END' if bad else value} AS {quote_column(field.name)}"


def _reject(bad: str) -> str:
    if not bad:
        return f"CAST(NULL AS {_REJECT_TYPE}) AS {REJECT}"
    return f"CASE WHEN {bad} THEN named_struct('raw', {RAW}, 'error', '{_ERROR}') END AS {REJECT}"
