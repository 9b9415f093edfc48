"""Files as a source: a directory, one file or a pattern; what is there now, or whatever arrives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from millstream.clients.storage import Storage
from millstream.connectors.file.counting import SKIPPING, held_rows
from millstream.connectors.file.formats import DEAR, INFERRING, FormatOptions, ReadFormat, extras_of
from millstream.connectors.file.layout import decide, directory_types, pin, pinned_files
from millstream.connectors.file.noted import changes
from millstream.connectors.file.paths import directory_values, is_pattern, list_files, literal_path, locate, total_size
from millstream.connectors.file.reading import Reading, stream
from millstream.errors import Diagnostic, RunError
from millstream.plan import types
from millstream.plan.components import ChangedInput, NodeContext, Problem, Progress, Source
from millstream.plan.options import Duration, SchemaMap

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SMALL = 32 << 20


class BoundedMode(BaseModel):
    """Read the files that are there at the first start, then end. Files that arrive later are left alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["bounded"]
    """Read what is there, then end."""


class ContinuousMode(BaseModel):
    """Go on reading files as they arrive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["continuous"]
    """Wait for more."""
    poll_interval: Duration = Duration("5s")
    """How often to look for new files."""


class FileSource(Source):
    """Reads files of a directory, of one file or of a pattern such as `data/2026-*/*.json`. Every file is read once; changing it
    later has no effect. Names that begin with `_` or `.` are left out. Directories called `key=value` give columns: a column that a
    file does not hold takes its value from there. Columns that are missing are null, others are left out; in CSV the header must have
    every column of the schema.

    Files are read in the order of their times of modification; files with the same time, to the millisecond, come in any order. With
    event time, the watermark must allow for that.

    A row that does not fit (CSV, JSON) is bad: `on_error` says what becomes of it. In the other formats a broken file stops the run.
    """

    type: ClassVar[str] = "file"
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
    """A directory, a file or a pattern; relative to the working directory, or a URL that Hadoop knows (`s3a://…`)."""
    format: ReadFormat
    """How the files are written. JSON means one object per line."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type. Default: found in the files at the first start, and kept."""
    mode: Annotated[BoundedMode | ContinuousMode, Field(discriminator="type")] = ContinuousMode(type="continuous")
    """`{type: bounded}` or `{type: continuous, poll_interval: 5s}`."""
    max_files_per_epoch: int | None = Field(default=None, ge=1)
    """The most files that an epoch takes. Default: all that are there."""
    recursive: bool = True
    """Whether to read sub-directories. Those called `key=value` are read always."""
    options: FormatOptions = Field(default={})
    """Options of Spark's reader for the format, such as `delimiter` or `header` (true for CSV unless said otherwise)."""

    def extras(self) -> tuple[str, ...]:
        return extras_of(self.format)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        found = []
        if not self.recursive and is_pattern(self.path):
            help_ = "a pattern already says how deep to look; leave `recursive` out"
            found.append(Problem("MS008", "`recursive: false` goes with a directory, not with a pattern", "recursive", help_))
        nested = [name for name, kind in (self.columns or {}).items() if pa.types.is_nested(types.parse(kind))]
        if self.format == "csv" and nested:
            found.append(Problem("MS008", f"csv has no way to write `{nested[0]}` as {(self.columns or {})[nested[0]]}", "schema"))
        if self.format == "text" and self.columns and self.columns != {"value": "string"}:
            found.append(Problem("MS008", "text files have one column, `value: string`", "schema", "leave `schema` out"))
        return found

    @property
    def dear(self) -> bool:
        return self.format in DEAR

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

    def discover(self, spark: SparkSession, context: NodeContext) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        place = locate(spark, self.path, context.name)
        files = self._require(list_files(spark, place, self.options, self.recursive), context.name)
        options = {**INFERRING.get(self.format, {}), **self.options, "recursiveFileLookup": "true"}
        found = to_arrow_schema(spark.read.format(self.format).options(**options).load(place.pattern).schema)
        data = {field.name: types.parse(types.name_of(field.type)) for field in found}
        if not data:
            raise RunError(Diagnostic("MS060", f"`{context.name}` finds files in `{self.path}`, and no row in them to learn columns from"))
        found_in_paths = directory_types(directory_values(files, place.base))
        return pa.schema(
            [pa.field(name, kind) for name, kind in (data | {k: v for k, v in found_in_paths.items() if k not in data}).items()]
        )

    def read(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        schema = context.schema if context.schema is not None else self.output() or self.discover(spark, context)
        place = locate(spark, self.path, context.name)
        files = list_files(spark, place, self.options, self.recursive)
        if self.bounded and pinned_files(context.storage) is None:
            self._require(files, context.name)
        layout = pin(context.storage, files, place, schema, self.bounded)
        known = [file for file in files if layout.files is None or file in layout.files]
        reading = Reading(
            self.format,
            schema,
            place,
            layout,
            self.options,
            self.recursive,
            context.isolate,
            sample=literal_path(known[0]) if known else "",
            max_files=self.max_files_per_epoch,
            node=context.name,
        )
        return stream(spark, reading)

    def rows_read(self, progress: Progress, context: NodeContext) -> int | None:
        """Spark's count, unless statistics in the files may have let it skip some of their rows."""
        if self.format not in SKIPPING or not progress.pushed:
            return progress.seen
        if self.format != "parquet" or not self.recursive:
            return None
        return held_rows(progress, self._pinned(context))

    def changed(self, spark: SparkSession, notes: Storage, start: Any, end: Any, context: NodeContext) -> list[ChangedInput]:
        return changes(spark, notes, start, end, self._pinned(context))

    def _pinned(self, context: NodeContext) -> frozenset[str] | None:
        """The files of a bounded source; Spark's notes also name files that came later and are not read."""
        if "pinned" not in context.memory:
            pinned = pinned_files(context.storage)
            context.memory["pinned"] = None if pinned is None else frozenset(pinned)
        found: frozenset[str] | None = context.memory["pinned"]
        return found

    def table(self, spark: SparkSession, context: NodeContext) -> DataFrame:
        schema = self.output() or self.discover(spark, context)
        place = locate(spark, self.path, context.name)
        files = self._require(list_files(spark, place, self.options, self.recursive), context.name)
        layout, sample = decide(files, place, schema), literal_path(files[0])
        reading = Reading(
            self.format, schema, place, layout, self.options, self.recursive, False, sample, node=context.name, streaming=False
        )
        return stream(spark, reading)

    def _require(self, files: list[str], node: str) -> list[str]:
        if not files:
            help_ = "" if self.bounded else "with a `schema`, the source may start before the first file is there"
            raise RunError(Diagnostic("MS060", f"`{node}` finds nothing to read: `{self.path}` holds no file", help=help_))
        return files
