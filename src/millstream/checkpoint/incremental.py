"""The files of an incremental query's state: what counts, what the state after an epoch consists of, and what is damaged.

    log/<epoch>.json, log/<epoch>-<random>/              what an epoch has added to the stores, and its result
    snapshots/<epoch>.json, snapshots/<epoch>-<random>/  all stores after an epoch

The JSON file, which is written last and once, makes its folder count.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.checkpoint.layout import damage_at
from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError

Kind = Literal["log", "snapshots"]
_KEPT_SNAPSHOTS = 2


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one store, or of the result, in a folder."""

    name: str
    """`NUMBER.STORE` with the number of the operator; empty for the result."""
    columns: tuple[str, ...]
    operator: str = ""
    """The kind of the operator."""
    rows: int = 0
    """In the log: the rows that the epoch has changed."""
    kept: int = 0
    """By how many rows the store has grown: the sum of the weights."""
    names: tuple[str, ...] = ()
    """The columns as they are shown, where that is known."""


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What a store holds after an epoch."""

    name: str
    operator: str
    rows: int
    bytes: int
    """In the files: of the newest snapshot and of the changes after it."""

    @property
    def number(self) -> int:
        """The operator's number."""
        return int(self.name.partition(".")[0])


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
    parts: tuple[Part, ...]
    """The stores and, last, the result."""

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
            parts = tuple(_part(*values) for values in found.pop("parts"))
            return Entry(**{**found, "kind": kind, "epoch": epoch, "parts": parts})
        except (ValueError, TypeError, KeyError):
            raise RunError(self._damage(f"{kind}/{epoch}.json", "it is not the JSON that was written")) from None

    def put(self, entry: Entry) -> bool:
        """Make a folder count; False when another one does."""
        content = {name: value for name, value in asdict(entry).items() if name not in {"kind", "epoch"}}
        content["parts"] = [list(part.values()) for part in content["parts"]]
        return self.storage.put_once(f"{entry.kind}/{entry.epoch}.json", json.dumps(content).encode())

    def path_to(self, epoch: int) -> list[Entry]:
        """What the state after an epoch consists of: the newest whole snapshot, and the changes after it."""
        written = [number for number in self.epochs("snapshots") if number <= epoch]
        whole = [number for number in written if self._is_whole(number)]
        if not whole and 0 in self.epochs("log"):
            written = []
        base = (whole or written or [-1])[-1]
        found = [self._require("snapshots", base)] if base >= 0 else []
        return found + [self._require("log", number) for number in range(base + 1, epoch + 1)]

    def _is_whole(self, snapshot: int) -> bool:
        """Whether a snapshot's files have the size that was written: an older one and the changes after it are as good."""
        found = self.entry("snapshots", snapshot)
        return found is not None and self.storage.exists(found.path) and self.storage.size(found.path) == found.bytes

    def holds(self, epochs: range) -> bool:
        """Whether epochs can be repeated: their results are written, and the state before them."""
        try:
            self.path_to(epochs[0] - 1)
        except RunError:
            return False
        return set(self.epochs("log")).issuperset(epochs)

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
        for number in self.epochs("snapshots"):
            if number <= epoch and not self._is_whole(number):
                yield self._damage(f"snapshots/{number}.json", "its files are not those that were written; an older snapshot is used")
        for entry in entries:
            files = [name for name in self.storage.files(entry.path) if name.endswith(".parquet")]
            if not files:
                yield self._damage(entry.path, "it has no files")
            for name in files:
                try:
                    pq.ParquetFile(io.BytesIO(self.storage.read(f"{entry.path}/{name}") or b""))
                except (pa.ArrowInvalid, OSError):
                    yield self._damage(f"{entry.path}/{name}", "it is not the Parquet file that was written")

    def sizes(self, epoch: int) -> list[StoreSize]:
        """The stores after an epoch."""
        found: dict[str, StoreSize] = {}
        for entry in self.path_to(epoch):
            written = self._bytes_of_parts(entry)
            for place, part in enumerate(entry.parts):
                if part.name.strip():
                    before = found.get(part.name, StoreSize(part.name, part.operator, 0, 0))
                    found[part.name] = replace(before, rows=before.rows + part.kept, bytes=before.bytes + written.get(place, 0))
        return list(found.values())

    def _bytes_of_parts(self, entry: Entry) -> dict[int, int]:
        """The place of a part → the size of its columns in the files, whose footers say it."""
        found: dict[int, int] = {}
        for name in (name for name in self.storage.files(entry.path) if name.endswith(".parquet")):
            footer = pq.ParquetFile(io.BytesIO(self.storage.read(f"{entry.path}/{name}") or b"")).metadata
            for group in (footer.row_group(index) for index in range(footer.num_row_groups)):
                for column in (group.column(index) for index in range(group.num_columns)):
                    top = column.path_in_schema.partition(".")[0]
                    if top.startswith("_p") and top[2:].isdigit():
                        found[int(top[2:])] = found.get(int(top[2:]), 0) + column.total_compressed_size
        return found

    def forget(self) -> None:
        """Delete old snapshots, and the changes before the oldest one that is kept."""
        kept = [number for number in self.epochs("snapshots") if self._is_whole(number)][-_KEPT_SNAPSHOTS:]
        if not kept:
            return
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


def _part(name: str, columns: list[str], operator: str = "", rows: int = 0, kept: int = 0, names: Sequence[str] = ()) -> Part:
    return Part(name, tuple(columns), operator, rows, kept, tuple(names))
