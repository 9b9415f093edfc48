"""Files as a source: a directory, one file or a pattern; the current files, or all that arrive."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.storage import Storage
from millstream.connectors.file.failures import recognise_source
from millstream.connectors.file.formats import EXPENSIVE, INFERRING, FormatOptions, ReadFormat, extras_of
from millstream.connectors.file.read.frames import Reading, stream
from millstream.connectors.file.read.layout import decide, directory_types, pin, pinned_files
from millstream.connectors.file.read.parquet_counts import SKIPPING, count_rows
from millstream.connectors.file.read.paths import directory_values, is_pattern, list_files, literal_path, locate, total_size
from millstream.connectors.file.read.recorded_files import changes
from millstream.errors import Diagnostic, RunError
from millstream.plan import types
from millstream.plan.components import ChangedInput, Dataset, NodeContext, Problem, Progress, Source, SourceRun
from millstream.plan.components.failure import Failure
from millstream.plan.options import Duration, SchemaMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SMALL = 32 << 20


class BoundedMode(BaseModel):
    """Read the files that exist at the first start, then end. Later files are ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["bounded"]
    """Read the current files, then end."""


class ContinuousMode(BaseModel):
    """Keep reading files as they arrive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["continuous"]
    """Wait for more files."""
    poll_interval: Duration = Duration("5s")
    """How often to poll for new files."""


class FileSource(Source):
    """Reads files of a directory, one file, or a pattern such as `data/2026-*/*.json`. Every file is read once; later changes to it have
    no effect. Names that begin with `_` or `.` are ignored. Directories called `key=value` provide columns: a column that a file does
    not have gets its value from there. Missing columns are null, extra columns are ignored; in CSV the header must have every column of
    the schema.

    Files are read in the order of their modification times; files with the same time, to the millisecond, come in any order. With event
    time, the watermark must allow for that.
    A row that does not fit (CSV, JSON) is a reject, and `on_error` applies. In the other formats a broken file stops the run.
    """

    type: ClassVar[str] = "file"
    keyless: ClassVar[bool] = True
    readable_as_table: ClassVar[bool] = True
    shaped_by: ClassVar[frozenset[str]] = frozenset({"path", "format", "schema", "columns", "options"})
    summary: ClassVar[str] = "Read CSV, JSON, Parquet, Avro, ORC or text files."
    example: ClassVar[str] = """
        raw.orders:
          type: file
          path: data/orders
          format: json
          schema: {id: int64, user: string, amount: "decimal(18,2)", at: timestamp, tags: "list<string>"}
          mode: {type: continuous, poll_interval: 5s}
          max_files_per_epoch: 100
    """
    adjustable: ClassVar[frozenset[str]] = frozenset({"max_files_per_epoch"})

    path: Annotated[str, Field(min_length=1)]
    """A directory, a file or a pattern; relative to the working directory, or a Hadoop URL (`s3a://…`)."""
    format: ReadFormat
    """The format of the files. JSON means one object per line."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type. Default: found in the files at the first start, and pinned."""
    mode: Annotated[BoundedMode | ContinuousMode, Field(discriminator="type")] = ContinuousMode(type="continuous")
    """`{type: bounded}` or `{type: continuous, poll_interval: 5s}`."""
    max_files_per_epoch: int | None = Field(default=None, ge=1)
    """The most files per epoch. Default: all that exist."""
    recursive: bool = True
    """Whether to read sub-directories. Those called `key=value` are always read."""
    options: FormatOptions = Field(default={})
    """Options of Spark's reader for the format, such as `delimiter` or `header` (default for CSV: true)."""

    def extras(self) -> tuple[str, ...]:
        return extras_of(self.format)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        found = []
        if not self.recursive and is_pattern(self.path):
            help_ = "a pattern already defines the depth; leave `recursive` out"
            found.append(Problem("MS008", "`recursive: false` works with a directory, not with a pattern", "recursive", help_))
        nested = [name for name, kind in (self.columns or {}).items() if pa.types.is_nested(types.parse(kind))]
        if self.format == "csv" and nested:
            found.append(Problem("MS008", f"csv has no way to write `{nested[0]}` as {(self.columns or {})[nested[0]]}", "schema"))
        if self.format == "text" and self.columns and self.columns != {"value": "string"}:
            found.append(Problem("MS008", "text files have one column, `value: string`", "schema", "leave `schema` out"))
        return found

    @property
    def expensive(self) -> bool:
        return self.format in EXPENSIVE

    @property
    def bounded(self) -> bool:
        return isinstance(self.mode, BoundedMode)

    @property
    def small(self) -> bool:
        return self.bounded and total_size(self.path, _SMALL) <= _SMALL

    @property
    def poll_interval_ms(self) -> int:
        return self.mode.poll_interval.milliseconds if isinstance(self.mode, ContinuousMode) else 0

    def output(self) -> pa.Schema | None:
        if self.format == "text":
            return pa.schema([pa.field("value", pa.string())])
        return types.schema(self.columns) if self.columns else None

    def recognise(self, failure: str) -> Failure | None:
        return recognise_source(failure)

    def datasets(self) -> tuple[Dataset, ...]:
        return (Dataset.of_path(self.path),)

    def open(self, context: NodeContext) -> FileSourceRun:
        return FileSourceRun(self, context)


class FileSourceRun(SourceRun):
    """Lists the files, pins the decisions about them, and reads them as a stream."""

    def __init__(self, source: FileSource, context: NodeContext) -> None:
        super().__init__(context)
        self.source = source

    def discover(self, spark: SparkSession) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        place = locate(spark, self.source.path, self.context.name)
        files = self._require(list_files(spark, place, self.source.options, self.source.recursive))
        options = {**INFERRING.get(self.source.format, {}), **self.source.options, "recursiveFileLookup": "true"}
        found = to_arrow_schema(spark.read.format(self.source.format).options(**options).load(place.pattern).schema)
        data = {field.name: types.parse(types.name_of(field.type)) for field in found}
        if not data:
            raise RunError(
                Diagnostic("MS060", f"`{self.context.name}` finds files in `{self.source.path}`, but no row in them to find the columns")
            )
        found_in_paths = directory_types(directory_values(files, place.base))
        return pa.schema(
            [pa.field(name, kind) for name, kind in (data | {k: v for k, v in found_in_paths.items() if k not in data}).items()]
        )

    def read(self, spark: SparkSession) -> DataFrame:
        schema = self.context.schema if self.context.schema is not None else self.source.output() or self.discover(spark)
        place = locate(spark, self.source.path, self.context.name)
        files = list_files(spark, place, self.source.options, self.source.recursive)
        if self.source.bounded and pinned_files(self.context.storage) is None:
            self._require(files)
        layout = pin(self.context.storage, files, place, schema, self.source.bounded)
        known = [file for file in files if layout.files is None or file in layout.files]
        reading = Reading(
            self.source.format,
            schema,
            place,
            layout,
            self.source.options,
            self.source.recursive,
            self.context.isolate,
            sample=literal_path(known[0]) if known else "",
            max_files=self.source.max_files_per_epoch,
            node=self.context.name,
        )
        return stream(spark, reading)

    def rows_read(self, progress: Progress) -> int | None:
        """Spark's count, unless file statistics may have let it skip rows."""
        if self.source.format not in SKIPPING or not progress.pushed:
            return progress.seen
        if self.source.format != "parquet" or not self.source.recursive:
            return None
        return count_rows(progress, self._pinned)

    def find_changes(self, spark: SparkSession, log: Storage, start: Any, end: Any) -> list[ChangedInput]:
        return changes(spark, log, start, end, self._pinned)

    @cached_property
    def _pinned(self) -> frozenset[str] | None:
        """The files of a bounded source; Spark's log also contains later files, which are not read."""
        pinned = pinned_files(self.context.storage)
        return None if pinned is None else frozenset(pinned)

    def table(self, spark: SparkSession) -> DataFrame:
        schema = self.source.output() or self.discover(spark)
        place = locate(spark, self.source.path, self.context.name)
        files = self._require(list_files(spark, place, self.source.options, self.source.recursive))
        layout, sample = decide(files, place, schema), literal_path(files[0])
        reading = Reading(
            self.source.format,
            schema,
            place,
            layout,
            self.source.options,
            self.source.recursive,
            False,
            sample,
            node=self.context.name,
            streaming=False,
        )
        return stream(spark, reading)

    def _require(self, files: list[str]) -> list[str]:
        if not files:
            help_ = "" if self.source.bounded else "with a `schema`, the source may start before the first file is there"
            raise RunError(
                Diagnostic("MS060", f"`{self.context.name}` finds nothing to read: `{self.source.path}` holds no file", help=help_)
            )
        return files
