"""Writes and reads the state of an incremental query.

Every epoch writes what it added to the operators' stores, and its result, before any sink commits the epoch. So the state before an epoch
can be read back, and an epoch whose changes are written is never computed again: its result is read back too, and what was delivered is
what later epochs remove. Now and then a snapshot of all stores is written; changes that are older than a snapshot are deleted.
`checkpoint.incremental` has the files.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from millstream.checkpoint.incremental import Entry, IncrementalState, Kind, Part
from millstream.clients.storage import Storage
from millstream.engine.incremental.part_counts import Counting, counted_in
from millstream.errors import Diagnostic, RunError

_SMALL_BYTES = 8 << 20
"""Changes up to this size are written by the driver: a Spark job that writes files takes some 100 ms longer."""
Parts = tuple[Part, ...]


class StateLog:
    """The state of one query on disk."""

    def __init__(
        self, storage: Storage, plan: str, query: str, require_lease: Callable[[], None], cost_of_reset: Callable[[], str] | None = None
    ) -> None:
        self._state, self._plan, self._query, self._require_lease = IncrementalState(storage), plan, query, require_lease
        self._cost_of_reset = cost_of_reset or (lambda: f"`--reset {query}` reads from the start again")
        self._sizes: dict[int, int] | None = None
        """Epoch → bytes of its changes, for the epochs after the last snapshot; None before they are read."""
        self._snapshot_bytes = 0

    def entry(self, epoch: int, digest: str) -> Entry | None:
        """The changes of an epoch, if they are written."""
        found = self._checked(self._state.entry("log", epoch))
        if found is not None and found.digest != digest:
            message = f"the checkpoint holds changes of `{self._query}` for epoch {epoch}, computed when that epoch had another plan"
            help_ = f"restore the checkpoint as a whole, or `--reset {self._query}` with empty targets"
            raise RunError(Diagnostic("MS055", message, detail="nothing was written", help=help_))
        return found

    def write(self, epoch: int, digest: str, rows: DataFrame, parts: Parts, held_bytes: int) -> Entry:
        """Write the changes of an epoch. Large ones are written by the workers."""
        return self._put("log", epoch, digest, rows, parts, held_bytes <= _SMALL_BYTES)

    def write_snapshot(self, epoch: int, digest: str, rows: DataFrame, parts: Parts) -> None:
        """Write all stores, and delete what is older than needed. Another thread may write changes meanwhile."""
        self._put("snapshots", epoch, digest, rows, parts, False)
        self._require_lease()
        self._state.forget()

    def count_again(self) -> None:
        """A snapshot was written: the changes since then are counted from its files."""
        self._sizes = None

    def path_to(self, epoch: int) -> list[Entry]:
        """What the state after an epoch consists of."""
        found = self._state.path_to(epoch)
        for entry in found:
            self._checked(entry)
        return found

    def read(self, spark: SparkSession, schema: StructType, entries: Iterable[Entry]) -> DataFrame:
        """The rows of entries."""
        return spark.read.schema(schema).parquet(*[f"{self._state.storage.url}/{entry.path}" for entry in entries])

    def is_snapshot_due(self, epoch: int, epochs: int, least_bytes: int) -> bool:
        """Whether a snapshot is worth its size: after some epochs, or when the changes are larger than the last one."""
        sizes = self._sizes_until(epoch)
        return len(sizes) >= epochs or sum(sizes.values()) >= max(least_bytes, 2 * self._snapshot_bytes)

    def bytes_until(self, epoch: int) -> int:
        """The size of the files from which the state after an epoch is read."""
        return sum(self._sizes_until(epoch).values()) + self._snapshot_bytes

    def _sizes_until(self, epoch: int) -> dict[int, int]:
        if self._sizes is None:
            base = max(self._state.epochs("snapshots"), default=-1)
            since = [entry for number in range(base + 1, epoch + 1) if (entry := self._state.entry("log", number))]
            last = self._state.entry("snapshots", base) if base >= 0 else None
            self._sizes, self._snapshot_bytes = {entry.epoch: entry.bytes for entry in since}, last.bytes if last else 0
        return self._sizes

    def _put(self, kind: Kind, epoch: int, digest: str, rows: DataFrame, parts: Parts, small: bool) -> Entry:
        entry = Entry(kind, epoch, digest, self._plan, f"{epoch}-{uuid.uuid4().hex[:8]}", 0, parts)
        storage = self._state.storage
        if small:
            data, table = io.BytesIO(), rows.coalesce(1).toArrow()  # one task: a frame has the partitions of all stores
            pq.write_table(table, data, compression="zstd")
            storage.put(f"{entry.path}/rows.parquet", data.getvalue())
            entry = replace(entry, bytes=data.getbuffer().nbytes, parts=counted_in(table, parts))
        else:
            counting = Counting(parts)
            counting.observe(rows).write.option("compression", "zstd").parquet(f"{storage.url}/{entry.path}")
            storage.sync(f"{entry.path}/{name}" for name in storage.files(entry.path))
            entry = replace(entry, bytes=storage.size(entry.path), parts=counting.read())
        self._require_lease()
        if not self._state.put(entry):
            storage.delete(entry.path)
            if kind == "log":
                message = f"another run has written epoch {epoch} of `{self._query}` meanwhile"
                raise RunError(Diagnostic("MS157", message, help="run one pipeline with this checkpoint at a time"))
        elif kind == "log" and self._sizes is not None:
            self._sizes[epoch] = entry.bytes
        return entry

    def _checked(self, entry: Entry | None) -> Entry | None:
        if entry is not None and entry.plan != self._plan:
            changed = "its text, its inputs, the key of its changes or the version of Spark or Millstream changed"
            message = f"the state of `{self._query}` belongs to another query: {changed}"
            raise RunError(Diagnostic("MS053", message, help=f"undo the change; or {self._cost_of_reset()}"))
        return entry
