"""The files of an incremental query's state: what counts, what the state after an epoch consists of, and what is damaged.

    log/<epoch>.json, log/<epoch>-<random>/              what an epoch has added to the stores, and its result
    snapshots/<epoch>.json, snapshots/<epoch>-<random>/  all stores after an epoch

The JSON file, which is written last and once, makes its folder count.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.checkpoint.layout import damage_at
from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError

Kind = Literal["log", "snapshots"]
_KEPT_SNAPSHOTS = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder of rows that counts."""

    kind: Kind
    epoch: int
    digest: str
    """Of the epoch's offsets."""
    plan: str
    """Of the operators and their stores."""
    folder: str
    bytes: int
    parts: tuple[tuple[str, tuple[str, ...]], ...]
    """The stores and, last, the result, each with its columns."""

    @property
    def path(self) -> str:
        return f"{self.kind}/{self.folder}"


class IncrementalState:
    """The files of one query."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def entry(self, kind: Kind, epoch: int) -> Entry | None:
        data = self.storage.read(f"{kind}/{epoch}.json")
        if data is None:
            return None
        try:
            found = json.loads(data)
            parts = tuple((name, tuple(columns)) for name, columns in found.pop("parts"))
            return Entry(**{**found, "kind": kind, "epoch": epoch, "parts": parts})
        except (ValueError, TypeError, KeyError):
            raise RunError(self._damage(f"{kind}/{epoch}.json", "it is not the JSON that was written")) from None

    def put(self, entry: Entry) -> bool:
        """Make a folder count; False when another one does."""
        content = {name: value for name, value in asdict(entry).items() if name not in {"kind", "epoch"}}
        return self.storage.put_once(f"{entry.kind}/{entry.epoch}.json", json.dumps(content).encode())

    def path_to(self, epoch: int) -> list[Entry]:
        """What the state after an epoch consists of: the newest snapshot, and the changes after it."""
        base = max((number for number in self.epochs("snapshots") if number <= epoch), default=-1)
        found = [self._require("snapshots", base)] if base >= 0 else []
        return found + [self._require("log", number) for number in range(base + 1, epoch + 1)]

    def holds(self, epochs: range) -> bool:
        """Whether epochs can be repeated: their results are written, and the state before them."""
        logged, first = set(self.epochs("log")), epochs[0]
        base = max((number for number in self.epochs("snapshots") if number < first), default=-1)
        return logged.issuperset(range(base + 1, epochs.stop))

    def epochs(self, kind: Kind) -> list[int]:
        names = self.storage.names(kind)
        return sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json") and not name.startswith("."))

    def damages(self, epoch: int) -> Iterator[Diagnostic]:
        """What is missing or unreadable of the state after an epoch."""
        try:
            entries = self.path_to(epoch)
        except RunError as error:
            yield from error.diagnostics
            return
        for entry in entries:
            files = [name for name in self.storage.files(entry.path) if name.endswith(".parquet")]
            if not files:
                yield self._damage(entry.path, "it has no files")
            for name in files:
                try:
                    pq.ParquetFile(io.BytesIO(self.storage.read(f"{entry.path}/{name}") or b""))
                except (pa.ArrowInvalid, OSError):
                    yield self._damage(f"{entry.path}/{name}", "it is not the Parquet file that was written")

    def forget(self) -> None:
        """Delete old snapshots, and the changes before the oldest one that is kept."""
        kept = self.epochs("snapshots")[-_KEPT_SNAPSHOTS:]
        self._delete("snapshots", kept[0] - 1)
        if len(kept) == _KEPT_SNAPSHOTS:
            self._delete("log", kept[0])

    def _delete(self, kind: Kind, last: int) -> None:
        """Delete entries up to an epoch, and folders of these epochs that never counted."""
        for name in sorted(self.storage.names(kind), key=lambda name: not name.endswith(".json")):
            number = name.partition("-")[0].removesuffix(".json")
            if number.isdigit() and int(number) <= last:
                self.storage.delete(f"{kind}/{name}")

    def _require(self, kind: Kind, epoch: int) -> Entry:
        found = self.entry(kind, epoch)
        if found is None:
            raise RunError(self._damage(f"{kind}/{epoch}.json", "it is missing"))
        if not self.storage.exists(found.path):
            raise RunError(self._damage(found.path, "it is missing"))
        return found

    def _damage(self, path: str, reason: str) -> Diagnostic:
        return damage_at(f"{self.storage.url}/{path}", reason)
