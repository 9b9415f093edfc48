"""Files as a sink, exactly once per epoch.

stage:  Spark writes into `<path>/_staging/<key>-<epoch>-<attempt>/`, which readers ignore; files and folders are synced.
commit: a put-once manifest commits the epoch. Then the files are renamed to their final paths and the folder is removed.

If killed before the manifest, the folder is garbage; if killed after it, the renames are repeated at the next start. Each attempt has its
own folder, so that tasks of a failed attempt that are still running do not touch other files.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.clients.storage import Storage, is_local, open_storage
from millstream.connectors.file.failures import recognise_sink
from millstream.connectors.file.formats import NO_MARKER, SHUFFLED_PER_BYTE, WRITING, FormatOptions, WriteFormat, extras_of
from millstream.connectors.file.write.manifests import ManifestEntry, Manifests, Move, key_of, keys
from millstream.connectors.file.write.partition_values import fail_on_bad_names, with_name_rejects
from millstream.connectors.file.write.staging import STAGING, clear, final_name, finish, is_hidden, move
from millstream.errors import Diagnostic, RunError, nearest
from millstream.jvm.file_writer import write
from millstream.plan.components import Dataset, Epoch, LedgerEntry, NodeContext, Problem, Sink, SinkRun, Staged, rolled_back
from millstream.plan.components.failure import Failure
from millstream.plan.options import Columns, Size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FileSink(Sink):
    """Writes every epoch's rows into new files of a directory, exactly once: readers see all files of an epoch or none, and an epoch
    that is repeated after a crash is not written again. Several sinks may write into the same directory.

    Most readers ignore names that begin with `_`, where unfinished files are. `millstream.committed_files(path)` lists exactly the
    committed files.
    """

    type: ClassVar[str] = "file"
    summary: ClassVar[str] = "Write Parquet, JSON, CSV, Avro or ORC files, exactly once."
    commit_method: ClassVar[str] = (
        "files are staged under `_staging/`; a manifest put once under `_millstream/` is the commit; renames follow, and are "
        "repeated after a restart"
    )
    example: ClassVar[str] = """
        out:
          type: file
          from: orders
          path: out/orders
          format: parquet
          partition_by: [country]
          target_file_size: 128MB
    """
    adjustable: ClassVar[frozenset[str]] = frozenset({"target_file_size"})

    path: Annotated[str, Field(min_length=1)]
    """The directory; relative to the working directory, or a Hadoop URL (`s3a://…`)."""
    format: WriteFormat
    """How to write. JSON means one object per line."""
    partition_by: Columns = ()
    """Columns that become directories, `country=DE/`. A null and an empty text share one, `__HIVE_DEFAULT_PARTITION__`. A row whose
    directory name would have more than 255 bytes is a reject."""
    target_file_size: Size | None = None
    """The approximate size of files. The rows of an epoch are shuffled for that, so there are fewer small files; an epoch with fewer
    rows has smaller ones, and the rows of one directory are not split. Default: each task writes its own files."""
    options: FormatOptions = Field(default={})
    """Options of Spark's writer for the format, such as `compression`."""

    @property
    def address_text(self) -> str:
        return str(Path(self.path).absolute()) if is_local(self.path) else self.path

    @property
    def recalls_without_spark(self) -> bool:
        return is_local(self.path)

    @property
    def validates_rows(self) -> bool:
        return bool(self.partition_by)

    def extras(self) -> tuple[str, ...]:
        return extras_of(self.format)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return [problem for schema in inputs.values() if schema is not None for problem in self._problems(schema)]

    @property
    def named_in_bytes(self) -> bool:
        """Whether a directory's name has a length limit. In object stores only whole paths have one."""
        return is_local(self.path) or self.path.startswith(("hdfs:", "viewfs:"))

    def _problems(self, schema: pa.Schema) -> list[Problem]:
        unknown = [name for name in self.partition_by if name not in schema.names]
        found = [Problem("MS024", f"unknown column `{name}`", "partition_by", nearest(name, schema.names)) for name in unknown]
        if not unknown and schema.names and set(schema.names) <= set(self.partition_by):
            found.append(Problem("MS026", "every column is in `partition_by`, so the files would have none", "partition_by"))
        if self.format == "csv":
            for field in schema:
                if pa.types.is_nested(field.type):
                    help_ = f"write JSON instead, or convert it to text before: `to_json({field.name})`"
                    found.append(Problem("MS026", f"csv cannot hold `{field.name}`, which is nested", "format", help_))
        return found

    def recognise(self, failure: str) -> Failure | None:
        return recognise_sink(failure)

    def datasets(self) -> tuple[Dataset, ...]:
        return (Dataset.of_path(self.path),)

    def open(self, context: NodeContext) -> FileSinkRun:
        return FileSinkRun(self, context)


@dataclass(frozen=True, slots=True)
class FileWork:
    """A staged epoch."""

    root: Storage
    folder: str
    entry: ManifestEntry


class FileSinkRun(SinkRun[FileWork]):
    """Writes staging folders, and commits them by manifests."""

    def __init__(self, sink: FileSink, context: NodeContext) -> None:
        super().__init__(context)
        self.sink = sink

    def prepare(self, spark: SparkSession) -> None:
        root = self._root(spark)
        if is_local(self.sink.path):
            _require_writable(Path(root.url), self.context.name)
        for key in keys(root):  # finish the renames of every committed epoch; leave the uncommitted folders of other sinks alone
            finish(root, key, remove_others=False)

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        root, key = self._root(spark), key_of(epoch)
        finish(root, key, remove_others=True)
        newest = Manifests(root, key).newest()
        return LedgerEntry(newest.epoch, newest.digest) if newest else None

    def recall(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        return self.ledger(spark, epoch)

    def with_rejects(self, frame: DataFrame) -> DataFrame:
        return with_name_rejects(frame, self.sink.partition_by if self.sink.named_in_bytes else ())

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged[FileWork]:
        root = self._root(frame.sparkSession)
        if self.sink.named_in_bytes and not self.context.isolate:
            frame = fail_on_bad_names(frame, self.sink.partition_by, epoch.sink)
        folder = f"{STAGING}/{key_of(epoch)}-{epoch.number:08d}-{uuid.uuid4().hex[:8]}"
        options = {**NO_MARKER, **WRITING.get(self.sink.format, {}), **self.sink.options}
        size = (
            round(self.sink.target_file_size.bytes * SHUFFLED_PER_BYTE.get(self.sink.format, 1.1)) if self.sink.target_file_size else None
        )
        root.make()
        try:
            written = write(frame, f"{root.url}/{folder}", self.sink.format, self.sink.partition_by, options, size)
        except BaseException:
            with suppress(Exception):  # the folder is removed at the next start, at the latest
                clear(root, folder)
            raise
        names = [name for name in root.files(folder) if not is_hidden(name)] if written.rows else []
        root.sync(f"{folder}/{name}" for name in names)
        moves = tuple(Move(f"{folder}/{name}", final_name(name, number, epoch)) for number, name in enumerate(names))
        entry = ManifestEntry(epoch.number, epoch.digest, written.rows, written.bytes, moves)
        return Staged(written.rows, FileWork(root, folder, entry), bytes=written.bytes)

    def commit(self, staged: Staged[FileWork], epoch: Epoch) -> None:
        root, folder, entry = staged.work.root, staged.work.folder, staged.work.entry
        manifests = Manifests(root, key_of(epoch))
        if epoch.before is not None and not manifests.holds(epoch.before.epoch):
            clear(root, folder)
            raise RunError(rolled_back(epoch))
        if not manifests.put_once(entry):
            held = manifests.read(epoch.number)
            clear(root, folder)
            if held is None or held.digest != epoch.digest:
                message = f"sink `{epoch.sink}` already holds epoch {epoch.number} of another history"
                raise RunError(Diagnostic("MS055", message, detail="nothing was written"))
            entry = held
        move(root, entry)
        clear(root, folder)
        manifests.fold(epoch.number)

    def abort(self, staged: Staged[FileWork], epoch: Epoch) -> None:
        clear(staged.work.root, staged.work.folder)

    def _root(self, spark: SparkSession | None) -> Storage:
        """The directory, as durable as the checkpoint."""
        return open_storage(self.sink.path, spark, self.context.storage.durable)


def _require_writable(path: Path, node: str) -> None:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        raise RunError(Diagnostic("MS068", f"`{node}` cannot write: `{existing}` is a file, not a directory"))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise RunError(
            Diagnostic("MS061", f"`{node}` has no permission to write into `{existing}`", help="change its permissions, or the path")
        )
