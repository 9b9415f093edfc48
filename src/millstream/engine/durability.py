"""What Spark writes into a checkpoint is made durable before a sink commits: Spark itself leaves that to the operating system.

Before an epoch is staged: the query's `metadata`, the epoch's `offsets/N`, what its sources have noted, and `commits/N-1`. So nothing is
ever staged or remembered for an epoch whose plan a power cut could take back.
Before its sinks commit: the state files that its tasks have written; they are there once the epoch's rows have been computed.
`commits/N` follows with the next epoch. Without it the epoch is repeated, and the ledgers recognise it.

Files are found by their names, or in folders that have changed since the last look: no tree is walked twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from millstream.clients.fsync import sync
from millstream.clients.storage import LocalStorage, Storage
from millstream.engine.checkpoint import OffsetEntry

_BACK = 10
"""How many notes of a file source are looked at when a run begins: a start that failed may have left some."""


class Durability:
    """Spark's part of a checkpoint, for one query. Does nothing where the file system is not local or `durability` is `process`."""

    def __init__(self, storage: Storage) -> None:
        self._root = storage.root if isinstance(storage, LocalStorage) and storage.durable else None
        self._begun, self._relied_on = False, -1
        self._known: dict[int, int] = {}
        self._folders: dict[Path, _Folder] = {}

    def planned(self, epoch: int, entry: OffsetEntry) -> None:
        """To be called before an epoch is staged."""
        if self._root is None:
            return
        root = self._root
        noted = [path for index, offset in enumerate(entry.offsets) for path in self._noted(root, index, offset)]
        if not self._begun:
            _sync_all([root / "metadata"], [root / "sources", root, root.parent])
        self._begun = True
        files = [*noted, root / f"commits/{epoch - 1}", root / f"offsets/{epoch}"]
        _sync_all(files, dict.fromkeys(path.parent for path in files))

    def computed(self) -> None:
        """To be called when the rows of an epoch have been computed, before a sink commits them."""
        if self._root is not None and (state := self._root / "state").is_dir():
            first = state not in self._folders
            self._changed(state)
            _sync_all([], [self._root] if first else [])

    def committed(self, epoch: int) -> None:
        """To be called before somebody relies on Spark's own commit of an epoch."""
        if self._root is not None and epoch != self._relied_on and (path := self._root / f"commits/{epoch}").exists():
            _sync_all([path], [path.parent])
            self._relied_on = epoch

    def _noted(self, root: Path, index: int, offset: object) -> list[Path]:
        """The new files in Spark's log of a source. That of a file source can be long, and its names follow from the offset."""
        folder = root / f"sources/{index}"
        newest = offset.get("logOffset") if isinstance(offset, dict) else None
        if not isinstance(newest, int):
            return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() and not self._begun else []
        known = self._known.get(index, newest - _BACK)
        self._known[index] = newest
        names = [f"{number}{ending}" for number in range(max(0, known + 1), newest + 1) for ending in ("", ".compact")]
        return [path for name in names if (path := folder / name).exists()]

    def _changed(self, path: Path) -> None:
        """New files of a folder and of those below it; then the folder itself."""
        folder = self._folders.setdefault(path, _Folder(path))
        files, folders = folder.new()
        for below in folders:
            self._changed(below)
        _sync_all(files, [path] if files or folder.grown else [])


class _Folder:
    """A folder that is looked at again when its time has changed."""

    def __init__(self, path: Path) -> None:
        self.path, self.grown = path, False
        self._time, self._seen, self._folders = 0, set[str](), list[Path]()

    def new(self) -> tuple[list[Path], list[Path]]:
        """Files that were not there the last time, and all folders."""
        time, self.grown = self.path.stat().st_mtime_ns, False
        if time == self._time:
            return [], self._folders
        entries = [entry for entry in os.scandir(self.path) if not entry.name.startswith(".")]
        folders = [self.path / entry.name for entry in entries if entry.is_dir()]
        names = {entry.name for entry in entries} - {folder.name for folder in folders}
        found = [self.path / name for name in names - self._seen]
        self.grown = not set(folders) <= set(self._folders)
        self._time, self._seen, self._folders = time, names, folders
        return found, folders


def _sync_all(files: Iterable[Path], folders: Iterable[Path]) -> None:
    """What is gone by now was not needed: Spark removes old epochs while we look."""
    for path in (*files, *folders):
        with suppress(FileNotFoundError):
            sync(path)
