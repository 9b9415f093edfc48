"""The state of an incremental query on disk.

Every epoch writes what it added to the operators' stores, and its result, before any sink commits the epoch. So the state before an epoch
can be read back, and an epoch whose changes are written is never computed again: its result is read back too, and what was delivered is
what later epochs remove. Now and then a snapshot of all stores is written; changes that are older than a snapshot are deleted.

    log/<epoch>.json, log/<epoch>-<random>/              the changes of an epoch: the JSON file makes the folder count
    snapshots/<epoch>.json, snapshots/<epoch>-<random>/  all stores after an epoch
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError

LOG, SNAPSHOTS = "log", "snapshots"
_SMALL_BYTES = 8 << 20
"""Changes up to this size are written by the driver: a Spark job that writes files takes some 100 ms longer."""
_KEPT_SNAPSHOTS = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder of rows that counts."""

    epoch: int
    digest: str
    """Of the epoch's offsets."""
    plan: str
    """Of the operators and their stores."""
    folder: str
    bytes: int


class StateLog:
    """The files of one query's incremental state."""

    def __init__(self, storage: Storage, plan: str, query: str) -> None:
        self._storage, self._plan, self._query = storage, plan, query
        self._logged: dict[int, Entry] | None = None

    def entry(self, epoch: int, digest: str) -> Entry | None:
        """The changes of an epoch, if they are written."""
        found = self._read(LOG, epoch)
        if found is not None and found.digest != digest:
            message = f"the checkpoint holds changes of `{self._query}` for epoch {epoch}, computed when that epoch had another plan"
            help_ = f"restore the checkpoint as a whole, or `--reset {self._query}` with empty targets"
            raise RunError(Diagnostic("MS055", message, detail="nothing was written", help=help_))
        return found

    def write(self, epoch: int, digest: str, rows: DataFrame, held_bytes: int) -> None:
        """Write the changes of an epoch. Large ones are written by the workers."""
        self._put(LOG, epoch, digest, rows, held_bytes <= _SMALL_BYTES)

    def write_snapshot(self, epoch: int, digest: str, rows: DataFrame) -> None:
        self._put(SNAPSHOTS, epoch, digest, rows, False)
        self._forget()

    def path_to(self, epoch: int) -> list[tuple[str, Entry]]:
        """What the state after an epoch is made of: the newest snapshot, and the changes after it."""
        snapshots = [number for number in self._numbers(SNAPSHOTS) if number <= epoch]
        base = max(snapshots, default=-1)
        found = [(SNAPSHOTS, self._require(SNAPSHOTS, base))] if snapshots else []
        return found + [(LOG, self._require(LOG, number)) for number in range(base + 1, epoch + 1)]

    def read(self, spark: SparkSession, schema: Any, entries: Iterable[tuple[str, Entry]]) -> DataFrame:
        """The rows of entries."""
        return spark.read.schema(schema).parquet(*[f"{self._storage.url}/{kind}/{entry.folder}" for kind, entry in entries])

    def due(self, epoch: int, epochs: int, least_bytes: int) -> bool:
        """Whether a snapshot is worth its size: after some epochs, or when the changes are larger than the last one."""
        snapshots = self._numbers(SNAPSHOTS)
        base = max(snapshots, default=-1)
        since = [entry for number in range(base + 1, epoch + 1) if (entry := self._read(LOG, number))]
        last = self._read(SNAPSHOTS, base) if snapshots else None
        return len(since) >= epochs or sum(entry.bytes for entry in since) >= max(least_bytes, 2 * (last.bytes if last else 0))

    def _put(self, kind: str, epoch: int, digest: str, rows: DataFrame, small: bool) -> None:
        folder = f"{epoch}-{uuid.uuid4().hex[:8]}"
        if small:
            data = io.BytesIO()
            pq.write_table(rows.toArrow(), data, compression="zstd")
            self._storage.put(f"{kind}/{folder}/rows.parquet", data.getvalue())
            size = data.getbuffer().nbytes
        else:
            rows.write.option("compression", "zstd").parquet(f"{self._storage.url}/{kind}/{folder}")
            self._storage.sync(f"{kind}/{folder}/{name}" for name in self._storage.files(f"{kind}/{folder}"))
            size = self._storage.size(f"{kind}/{folder}")
        entry = {"digest": digest, "plan": self._plan, "folder": folder, "bytes": size}
        if not self._storage.put_once(f"{kind}/{epoch}.json", json.dumps(entry).encode()):
            self._storage.delete(f"{kind}/{folder}")

    def _read(self, kind: str, epoch: int) -> Entry | None:
        data = self._storage.read(f"{kind}/{epoch}.json")
        if data is None:
            return None
        try:
            entry = Entry(epoch, **json.loads(data))
        except (ValueError, TypeError):
            raise RunError(self._damage(f"{kind}/{epoch}.json", "it is not the JSON that was written")) from None
        if entry.plan != self._plan:
            message = f"the state of `{self._query}` belongs to another query: its text, its inputs or the version of Spark changed"
            help_ = f"undo the change, or `--reset {self._query}` reads from the start again"
            raise RunError(Diagnostic("MS053", message, help=help_))
        return entry

    def _require(self, kind: str, epoch: int) -> Entry:
        found = self._read(kind, epoch)
        if found is None:
            raise RunError(self._damage(f"{kind}/{epoch}.json", "it is missing"))
        if not self._storage.exists(f"{kind}/{found.folder}"):
            raise RunError(self._damage(f"{kind}/{found.folder}", "it is missing"))
        return found

    def _damage(self, path: str, reason: str) -> Diagnostic:
        help_ = "restore the checkpoint from a copy, or start the query anew with `--reset QUERY`"
        return Diagnostic("MS052", f"the checkpoint file `{self._storage.url}/{path}` is damaged: {reason}", help=help_)

    def _numbers(self, kind: str) -> list[int]:
        names = self._storage.names(kind)
        return sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json") and not name.startswith("."))

    def _forget(self) -> None:
        """Delete old snapshots, the changes before the oldest one that is kept, and folders that never counted."""
        kept = self._numbers(SNAPSHOTS)[-_KEPT_SNAPSHOTS:]
        self._delete(SNAPSHOTS, lambda number: number < kept[0])
        if len(kept) == _KEPT_SNAPSHOTS:
            self._delete(LOG, lambda number: number <= kept[0])

    def _delete(self, kind: str, is_old: Callable[[int], bool]) -> None:
        for name in sorted(self._storage.names(kind), key=lambda name: not name.endswith(".json")):
            number = name.partition("-")[0].removesuffix(".json")
            if number.isdigit() and is_old(int(number)):
                self._storage.delete(f"{kind}/{name}")
