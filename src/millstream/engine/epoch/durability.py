"""Fsync of Spark's checkpoint files before a sink commits. Spark itself leaves that to the operating system.

Before an epoch is staged, these files are synced: the query's `metadata`, the epoch's `offsets/N`, the logs of its sources, and
`commits/N-1`. So nothing is staged for an epoch whose plan a power cut could remove.
Before its sinks commit, the state files that its tasks wrote are synced; they exist once the epoch's rows are computed.
`commits/N` is synced with the next epoch. If it is missing, the epoch is repeated, and the ledgers recognise it.
Files are found by name, or in folders that changed since the last scan: no tree is scanned twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from millstream.checkpoint.layout import OffsetEntry
from millstream.clients.fsync import sync
from millstream.clients.storage import LocalStorage, Storage

_BACK = 10
"""How many entries of a file source's log are synced when a run begins: a failed start may have left some."""


class Durability:
    """Syncs Spark's part of one query's checkpoint. Does nothing when the file system is not local or `durability` is `process`."""

    def __init__(self, storage: Storage) -> None:
        self._root = storage.root if isinstance(storage, LocalStorage) and storage.durable else None
        self._begun, self._relied_on = False, -1
        self._known: dict[int, int] = {}
        self._folders: dict[Path, _Folder] = {}

    def sync_plan(self, epoch: int, entry: OffsetEntry) -> None:
        """Sync the plan of an epoch. Call it before the epoch is staged."""
        if self._root is None:
            return
        root = self._root
        noted = [path for index, offset in enumerate(entry.offsets) for path in self._source_log_files(root, index, offset)]
        if not self._begun:
            _sync_all([root / "metadata"], [root / "sources", root, root.parent])
        self._begun = True
        files = [*noted, root / f"commits/{epoch - 1}", root / f"offsets/{epoch}"]
        _sync_all(files, dict.fromkeys(path.parent for path in files))

    def sync_state(self) -> None:
        """Sync the state. Call it when the rows of an epoch are computed, before a sink commits them."""
        if self._root is not None and (state := self._root / "state").is_dir():
            first = state not in self._folders
            self._sync_folder(state)
            _sync_all([], [self._root] if first else [])

    def sync_commit(self, epoch: int) -> None:
        """Sync Spark's commit of an epoch. Call it before other systems rely on that commit."""
        if self._root is not None and epoch != self._relied_on and (path := self._root / f"commits/{epoch}").exists():
            _sync_all([path], [path.parent])
            self._relied_on = epoch

    def _source_log_files(self, root: Path, index: int, offset: object) -> list[Path]:
        """The new files in Spark's log of a source. The log of a file source can be long, so its file names are derived from the offset."""
        folder = root / f"sources/{index}"
        newest = offset.get("logOffset") if isinstance(offset, dict) else None
        if not isinstance(newest, int):
            return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() and not self._begun else []
        known = self._known.get(index, newest - _BACK)
        self._known[index] = newest
        names = [f"{number}{ending}" for number in range(max(0, known + 1), newest + 1) for ending in ("", ".compact")]
        return [path for name in names if (path := folder / name).exists()]

    def _sync_folder(self, path: Path) -> None:
        """Sync the new files of a folder and its subfolders, then the folder itself."""
        folder = self._folders.setdefault(path, _Folder(path))
        files, folders = folder.new()
        for below in folders:
            self._sync_folder(below)
        _sync_all(files, [path] if files or folder.grown else [])


class _Folder:
    """A folder that is listed again when its modification time has changed."""

    def __init__(self, path: Path) -> None:
        self.path, self.grown = path, False
        self._time, self._seen, self._folders = 0, set[str](), list[Path]()

    def new(self) -> tuple[list[Path], list[Path]]:
        """Files that are new since the last call, and all folders."""
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
    """Sync each file that still exists. Spark may remove old epochs meanwhile; those files are not needed."""
    for path in (*files, *folders):
        with suppress(FileNotFoundError):
            sync(path)
