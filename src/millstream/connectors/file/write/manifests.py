"""Manifests of committed epochs: one small put-once file per epoch. That file is the commit; everything else can be repeated.

<path>/_millstream/<key>/00000041.json             one epoch: a line of JSON with digest, rows, files
<path>/_millstream/<key>/00000000-00000099.json    the lines of a hundred epochs, folded to keep listings short

The key belongs to one sink of one query, so that sinks may share a directory. Folding copies lines first, unparsed, and deletes
afterwards; readers use the wider one. A line is copied twice at most, into files of a limited size: after a million epochs a
fold and a start cost the same as before. Files of older versions contain a list instead of lines.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from millstream.clients.storage import Storage
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import Epoch

FOLDER = "_millstream"
_WIDTHS = (100, 10_000)
_LARGEST = 8 << 20
"""Approximate bytes of a folded file."""
_NAME = re.compile(r"(\d+)(?:-(\d+))?\.json")


@dataclass(frozen=True, slots=True)
class Move:
    """A file that moves from the staging folder to its final path."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One committed epoch."""

    epoch: int
    digest: str
    rows: int
    bytes: int
    files: tuple[Move, ...]


def key_of(epoch: Epoch) -> str:
    """An identifier of one sink of one query that can be part of file names."""
    mark = hashlib.sha256(f"{epoch.query}\0{epoch.sink}".encode()).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', epoch.sink).strip('-')[:40] or 'sink'}-{mark}"


def keys(root: Storage) -> list[str]:
    return root.names(FOLDER)


class Manifests:
    """The commits of one sink."""

    def __init__(self, root: Storage, key: str) -> None:
        self._folder = root.child(f"{FOLDER}/{key}")

    def put_once(self, entry: ManifestEntry) -> bool:
        return self._folder.put_once(_name(entry.epoch, entry.epoch), _line(asdict(entry)))

    def holds(self, epoch: int) -> bool:
        return self._folder.exists(_name(epoch, epoch)) or self._range_with(epoch) is not None

    def read(self, epoch: int) -> ManifestEntry | None:
        covered = self._range_with(epoch)
        while covered and (data := self._folder.read(_name(*covered))) is None:  # it was folded after it was listed
            gone, covered = covered, self._range_with(epoch)
            if gone == covered:
                raise self._damage(*gone)
        lines = self._split_lines(data, *covered) if covered and data is not None else []
        mark = b'{"epoch": %d,' % epoch
        return next((self._entry(line, *covered) for line in lines if covered and line.startswith(mark)), None)

    def newest(self) -> ManifestEntry | None:
        ranges = self._ranges()
        return self._entry(self._lines(*ranges[-1])[-1], *ranges[-1]) if ranges else None

    def all(self) -> Iterator[ManifestEntry]:
        """Every commit, oldest first, also while the sink writes: a missing file was folded, and its lines are in another one."""
        done, gone, ranges = -1, (-1, -1), deque(self._ranges())
        while ranges:
            first, last = ranges.popleft()
            if (data := self._folder.read(_name(first, last))) is not None:
                lines = (self._entry(line, first, last) for line in self._split_lines(data, first, last))
                yield from (entry for entry in lines if entry.epoch > done)
                done = last
            elif gone == (first, last):
                raise self._damage(first, last)
            else:
                gone, ranges = (first, last), deque(covered for covered in self._ranges() if covered[1] > done)

    def fold(self, epoch: int) -> None:
        """After every hundredth and every ten-thousandth epoch: replace a hundred files by one."""
        for width in _WIDTHS:
            if (epoch + 1) % width == 0:
                self._join([covered for covered in self._ranges() if covered[0] > epoch - width and covered[1] <= epoch])
                self._remove_covered()

    def _join(self, ranges: list[tuple[int, int]]) -> None:
        """Merge neighbours into one file, up to its size limit."""
        parts: list[bytes] = []
        joined: list[tuple[int, int]] = []
        for covered in ranges:
            data = b"".join(self._lines(*covered))
            if parts and sum(map(len, parts)) + len(data) > _LARGEST:
                self._put(joined, parts)
                parts, joined = [], []
            parts.append(data)
            joined.append(covered)
        self._put(joined, parts)

    def _put(self, joined: list[tuple[int, int]], parts: list[bytes]) -> None:
        if len(joined) > 1:
            self._folder.put_once(_name(joined[0][0], joined[-1][1]), b"".join(parts))

    def _remove_covered(self) -> None:
        kept = set(self._ranges())
        for name in self._folder.names():
            if (covered := _range(name)) is not None and covered not in kept:
                self._folder.delete(name)

    def _range_with(self, epoch: int) -> tuple[int, int] | None:
        return next((covered for covered in self._ranges() if covered[0] <= epoch <= covered[1]), None)

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

    def _lines(self, first: int, last: int) -> list[bytes]:
        """The entries of a file, at least one."""
        return self._split_lines(self._folder.read(_name(first, last)) or b"", first, last)

    def _split_lines(self, data: bytes, first: int, last: int) -> list[bytes]:
        try:
            lines = [_line(item) for item in json.loads(data)] if data.startswith(b"[") else data.splitlines(keepends=True)
        except ValueError:
            raise self._damage(first, last) from None
        if not lines or not lines[-1].endswith(b"\n"):
            raise self._damage(first, last)
        return lines

    def _entry(self, line: bytes, first: int, last: int) -> ManifestEntry:
        try:
            return _decode(json.loads(line))
        except (ValueError, KeyError, TypeError):
            raise self._damage(first, last) from None

    def _damage(self, first: int, last: int) -> RunError:
        message = f"the manifest of committed epochs is damaged: {self._folder.url}/{_name(first, last)}"
        return RunError(Diagnostic("MS052", message, help="restore the file from a copy of the target"))


def _name(first: int, last: int) -> str:
    return f"{first:08d}.json" if first == last else f"{first:08d}-{last:08d}.json"


def _range(name: str) -> tuple[int, int] | None:
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2] or match[1])) if match else None


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


def _decode(item: dict[str, Any]) -> ManifestEntry:
    return ManifestEntry(item["epoch"], item["digest"], item["rows"], item["bytes"], tuple(Move(**file) for file in item["files"]))
