"""Files as a sink, exactly once per epoch.

stage:  Spark writes into `<path>/_staging/<key>-<epoch>-<attempt>/`, where no reader looks; files and folders are made durable.
commit: a manifest is put once; from then on the epoch counts. The files are then renamed to their places and the folder is removed.

Killed before the manifest, the folder is rubbish; killed after it, the renames are repeated at the next start. Each attempt has a
folder of its own, so that tasks of an attempt that failed, and are still running, write into nobody's files.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.clients.storage import Storage, is_local, open_storage
from millstream.clients.writing import write
from millstream.connectors.file.fitting import required, told_apart
from millstream.connectors.file.formats import SHUFFLED_PER_BYTE, WRITING, FormatOptions, WriteFormat, extras_of
from millstream.connectors.file.manifests import Entry, Manifests, Move, key_of, keys
from millstream.connectors.file.staging import STAGING, clear, final_name, finish, is_hidden, move
from millstream.errors import Diagnostic, RunError, nearest
from millstream.plan.components import Epoch, LedgerEntry, NodeContext, Problem, Sink, Staged, went_back
from millstream.plan.options import Columns, Size

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FileSink(Sink):
    """Writes every epoch's rows into new files of a directory, exactly once: readers see an epoch's files or none of them, and an
    epoch that is repeated after a crash is not written again. Several sinks may write into the same directory.

    Most readers leave out names that begin with `_`, where unfinished work lies. `millstream.committed_files(path)` lists what is
    committed, to the letter.
    """

    type: ClassVar[str] = "file"
    summary: ClassVar[str] = "Write Parquet, JSON, CSV, Avro or ORC files, exactly once."
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
    """The directory; relative to the working directory, or a URL that Hadoop knows (`s3a://…`)."""
    format: WriteFormat
    """How to write. JSON means one object per line."""
    partition_by: Columns = ()
    """Columns that become directories, `country=DE/`. A null and an empty text share one, `__HIVE_DEFAULT_PARTITION__`. A row whose
    directory would have a name of more than 255 bytes is a bad row."""
    target_file_size: Size | None = None
    """About how large files should be. The rows of an epoch are brought together for that, so there are fewer small files; an epoch
    with fewer rows gives smaller ones, and the rows of one directory are not cut. Default: each task writes its own files."""
    options: FormatOptions = Field(default={})
    """Options of Spark's writer for the format, such as `compression`."""

    @property
    def place(self) -> str:
        return str(Path(self.path).absolute()) if is_local(self.path) else self.path

    @property
    def recalls_alone(self) -> bool:
        return is_local(self.path)

    @property
    def judges(self) -> bool:
        return bool(self.partition_by)

    def extras(self) -> tuple[str, ...]:
        return extras_of(self.format)

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        return [problem for schema in inputs.values() if schema is not None for problem in self._problems(schema)]

    def prepare(self, spark: SparkSession, context: NodeContext) -> None:
        root = self._root(spark, context)
        if is_local(self.path):
            _require_writable(Path(root.url), context.name)
        for key in keys(root):  # a commit is a commit, whoever made it; the work of others that is no commit is theirs
            finish(root, key, remove_others=False)

    def ledger(self, spark: SparkSession | None, epoch: Epoch) -> LedgerEntry | None:
        root, key = self._root(spark, epoch.context), key_of(epoch)
        finish(root, key, remove_others=True)
        newest = Manifests(root, key).newest()
        return LedgerEntry(newest.epoch, newest.digest) if newest else None

    def judged(self, frame: DataFrame, context: NodeContext) -> DataFrame:
        return told_apart(frame, self.partition_by if self._named_in_bytes else ())

    def stage(self, frame: DataFrame, epoch: Epoch) -> Staged:
        root = self._root(frame.sparkSession, epoch.context)
        if self._named_in_bytes and not (epoch.context and epoch.context.isolate):
            frame = required(frame, self.partition_by, epoch.sink)
        folder = f"{STAGING}/{key_of(epoch)}-{epoch.number:08d}-{uuid.uuid4().hex[:8]}"
        options = {**WRITING.get(self.format, {}), **self.options}
        size = round(self.target_file_size.bytes * SHUFFLED_PER_BYTE.get(self.format, 1.1)) if self.target_file_size else None
        root.make()
        try:
            written = write(frame, f"{root.url}/{folder}", self.format, self.partition_by, options, size)
        except BaseException:
            with suppress(Exception):  # the folder is removed at the next start, at the latest
                clear(root, folder)
            raise
        names = [name for name in root.files(folder) if not is_hidden(name)] if written.rows else []
        root.sync(f"{folder}/{name}" for name in names)
        moves = tuple(Move(f"{folder}/{name}", final_name(name, number, epoch)) for number, name in enumerate(names))
        return Staged(written.rows, (root, folder, Entry(epoch.number, epoch.digest, written.rows, written.bytes, moves)))

    def commit(self, staged: Staged, epoch: Epoch) -> None:
        root, folder, entry = staged.payload
        manifests = Manifests(root, key_of(epoch))
        if epoch.before is not None and not manifests.holds(epoch.before.epoch):
            clear(root, folder)
            raise RunError(went_back(epoch))
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

    def abort(self, staged: Staged, epoch: Epoch) -> None:
        root, folder, _ = staged.payload
        clear(root, folder)

    @property
    def _named_in_bytes(self) -> bool:
        """Whether a directory's name has a limit of its own. In object stores only whole paths have one."""
        return is_local(self.path) or self.path.startswith(("hdfs:", "viewfs:"))

    def _root(self, spark: SparkSession | None, context: NodeContext | None) -> Storage:
        """The directory, as durable as the checkpoint."""
        return open_storage(self.path, spark, context is None or context.storage.durable)

    def _problems(self, schema: pa.Schema) -> list[Problem]:
        unknown = [name for name in self.partition_by if name not in schema.names]
        found = [Problem("MS024", f"unknown column `{name}`", "partition_by", nearest(name, schema.names)) for name in unknown]
        if not unknown and schema.names and set(schema.names) <= set(self.partition_by):
            found.append(Problem("MS026", "every column is in `partition_by`, so the files would have none", "partition_by"))
        if self.format == "csv":
            for field in schema:
                if pa.types.is_nested(field.type):
                    help_ = f"write JSON instead, or make it text before: `to_json({field.name})`"
                    found.append(Problem("MS026", f"csv cannot hold `{field.name}`, which is nested", "format", help_))
        return found


def _require_writable(path: Path, node: str) -> None:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        raise RunError(Diagnostic("MS068", f"`{node}` cannot write: `{existing}` is a file, not a directory"))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise RunError(Diagnostic("MS061", f"`{node}` may not write into `{existing}`", help="change its permissions, or the path"))
