"""What has been committed: one small file per epoch, put once. That file is the commit; everything else can be repeated.

<path>/_millstream/<key>/00000041.json             one epoch: digest, rows, files
<path>/_millstream/<key>/00000000-00000099.json    the same for a hundred of them, folded so that listing stays short

The key belongs to one sink of one query, so that sinks may share a directory. Folding copies first and deletes afterwards; whoever
finds both takes the wider one.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch

FOLDER = "_millstream"
_WIDTHS = (100, 10_000, 1_000_000)
_NAME = re.compile(r"(\d+)(?:-(\d+))?\.json")


@dataclass(frozen=True, slots=True)
class Move:
    """A file on its way from the staging folder to its place."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One committed epoch."""

    epoch: int
    digest: str
    rows: int
    bytes: int
    files: tuple[Move, ...]


def key_of(epoch: Epoch) -> str:
    """A name for one sink of one query that can be part of file names."""
    mark = hashlib.sha256(f"{epoch.query}\0{epoch.sink}".encode()).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', epoch.sink).strip('-')[:40] or 'sink'}-{mark}"


def keys(root: Storage) -> list[str]:
    return root.names(FOLDER)


class Manifests:
    """The commits of one sink."""

    def __init__(self, root: Storage, key: str) -> None:
        self._folder = root.child(f"{FOLDER}/{key}")

    def put_once(self, entry: Entry) -> bool:
        return self._folder.put_once(_name(entry.epoch, entry.epoch), _encode([entry]))

    def read(self, epoch: int) -> Entry | None:
        return next((entry for entry in self._holding(epoch, epoch) if entry.epoch == epoch), None)

    def newest(self) -> Entry | None:
        ranges = self._ranges()
        return max(self._load(*ranges[-1]), key=lambda entry: entry.epoch) if ranges else None

    def all(self) -> list[Entry]:
        """Every commit, oldest first."""
        ranges = self._ranges()
        return sorted((entry for covered in ranges for entry in self._load(*covered)), key=lambda entry: entry.epoch)

    def fold(self, epoch: int) -> None:
        """After every hundredth, ten-thousandth, millionth epoch: one file instead of a hundred."""
        for width in _WIDTHS:
            if (epoch + 1) % width == 0:
                first = epoch + 1 - width
                self._folder.put_once(_name(first, epoch), _encode(self._holding(first, epoch)))
                self._remove_covered()

    def _remove_covered(self) -> None:
        kept = set(self._ranges())
        for name in self._folder.names():
            if (covered := _range(name)) is not None and covered not in kept:
                self._folder.delete(name)

    def _holding(self, first: int, last: int) -> list[Entry]:
        inside = [covered for covered in self._ranges() if covered[0] <= last and covered[1] >= first]
        return [entry for covered in inside for entry in self._load(*covered)]

    def _ranges(self) -> list[tuple[int, int]]:
        """The files' ranges, without those that a wider one covers."""
        found = sorted(
            {covered for name in self._folder.names() if (covered := _range(name))}, key=lambda covered: (covered[0], -covered[1])
        )
        kept: list[tuple[int, int]] = []
        for covered in found:
            if not kept or covered[1] > kept[-1][1]:
                kept.append(covered)
        return kept

    def _load(self, first: int, last: int) -> list[Entry]:
        name = _name(first, last)
        try:
            return [_decode(item) for item in json.loads(self._folder.read(name) or b"")]
        except (ValueError, KeyError, TypeError):
            message = f"the record of what is committed is damaged: {self._folder.url}/{name}"
            raise RunError(Diagnostic("MS052", message, help="restore the file from a copy of the target")) from None


def _name(first: int, last: int) -> str:
    return f"{first:08d}.json" if first == last else f"{first:08d}-{last:08d}.json"


def _range(name: str) -> tuple[int, int] | None:
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2] or match[1])) if match else None


def _encode(entries: list[Entry]) -> bytes:
    return json.dumps([asdict(entry) for entry in entries], ensure_ascii=False).encode()


def _decode(item: dict[str, Any]) -> Entry:
    return Entry(item["epoch"], item["digest"], item["rows"], item["bytes"], tuple(Move(**file) for file in item["files"]))
