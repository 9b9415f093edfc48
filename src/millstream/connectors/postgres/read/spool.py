"""The spool: changes that were read are stored as files in the checkpoint, and all readers use those.

A chunk is some data files (Arrow's stream format) and then its put-once manifest: the manifest makes the chunk valid. It contains the
chunk's end in Postgres' log and the number of its next row. An offset is the number of a chunk. When a chunk is committed, its rows and
everything before it are deleted; its manifest stays, as the position to continue from.
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

import pyarrow as pa
from numpy import arange

from millstream.clients.storage import Storage
from millstream.connectors.postgres.read.folder import SpoolFolder
from millstream.errors import Diagnostic, RunError, TemporaryError
from millstream.plan.changelog import SEQUENCE

FOLDER = "spool"
_FILE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """The manifest of a chunk."""

    number: int
    end: int
    """Its end in the log."""
    seq: int
    """The number of the first row after it."""
    total: int = 0
    """Messages of this chunk and all before."""
    files: tuple[str, ...] = ()
    seen: str = ""
    """The snapshot of the first chunk."""
    until: int = 0
    """A position in the log after the snapshot: it cannot have seen later commits. 0: not recorded."""


@dataclass(frozen=True)
class Spool:
    """The chunks in a node's folder."""

    place: SpoolFolder

    def last(self) -> Chunk | None:
        numbers = self.numbers()
        return self.chunk(numbers[-1]) if numbers else None

    def numbers(self) -> list[int]:
        return sorted(int(name.partition(".")[0]) for name in self.place.names(FOLDER) if name.endswith(".json") and name[0] != ".")

    def chunk(self, number: int) -> Chunk:
        data = self.place.read(_manifest(number))
        if data is None:
            message = f"chunk {number} of the changes is no longer in the checkpoint"
            raise RunError(Diagnostic("MS128", message, help="`--reset` every query that reads the source"))
        facts = json.loads(data)
        return Chunk(**{**facts, "files": tuple(facts["files"])})

    def add(self, chunk: Chunk) -> Chunk:
        if not self.place.put_once(_manifest(chunk.number), json.dumps(asdict(chunk)).encode()):
            raise TemporaryError(Diagnostic("MS122", f"chunk {chunk.number} of the changes was written by another process"))
        return chunk

    def batches(self, path: str) -> Iterator[pa.RecordBatch]:
        data = self.place.read(f"{FOLDER}/{path}")
        if data is None:
            raise RunError(Diagnostic("MS128", f"`{path}` of the changes is no longer in the checkpoint"))
        with pa.ipc.open_stream(data) as stream:
            yield from stream


@dataclass
class ChunkWriter:
    """Writes the data files of a chunk, and numbers its rows."""

    place: SpoolFolder
    number: int
    seq: int
    schema: pa.Schema
    files: list[str] = field(default_factory=list)
    _name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    _held: list[pa.Table] = field(default_factory=list)
    _bytes: int = 0

    def write(self, rows: pa.Table) -> None:
        numbers = pa.array(arange(self.seq, self.seq + rows.num_rows), pa.int64())
        self._held.append(rows.append_column(SEQUENCE, numbers).cast(self.schema))
        self.seq += rows.num_rows
        self._bytes += rows.nbytes
        if self._bytes >= _FILE_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._held:
            return
        buffer, path = io.BytesIO(), f"{self.number:010d}-{self._name}-{len(self.files)}.arrow"
        with pa.ipc.new_stream(buffer, self.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
            for table in self._held:
                stream.write_table(table)
        self.place.put(f"{FOLDER}/{path}", buffer.getvalue())
        self.files.append(path)
        self._held, self._bytes = [], 0


def forget(storage: Storage, number: int) -> None:
    """Delete the rows up to a chunk and the manifests before it."""
    for name in storage.names(FOLDER):
        own = name.partition(".")[0].partition("-")[0]
        if own.isdigit() and (int(own) < number or (int(own) == number and name.endswith(".arrow"))):
            storage.delete(f"{FOLDER}/{name}")


def _manifest(number: int) -> str:
    return f"{FOLDER}/{number:010d}.json"
