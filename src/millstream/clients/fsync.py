"""Syncs files to the disk: first the files, then the folders that contain their names.

`fsync` also works on files that other processes have written, with a read-only descriptor. A name is durable when its folder is synced; a
new folder when its parent is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """Sync one file, or the names in one folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_below(top: Path, files: Iterable[Path]) -> None:
    """Sync files, then every folder from theirs up to `top`, the deepest first."""
    folders: set[Path] = set()
    for file in files:
        sync(file)
        for folder in file.parents:
            if folder in folders or not folder.is_relative_to(top):
                break
            folders.add(folder)
    for folder in sorted(folders, key=lambda each: len(each.parts), reverse=True):
        sync(folder)


def make_durable(folder: Path) -> None:
    """Create a folder and its missing parents; their names are durable, except in a folder that cannot be read."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(made):
        with suppress(PermissionError):
            sync(each.parent)
