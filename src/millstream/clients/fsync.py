"""What the operating system holds in memory is made to last: files first, then the folders that name them.

`fsync` works on what other processes have written, through a descriptor that only reads. A name is durable once the folder that holds it
is; a new folder once its parent is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """One file, or the names in one folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_below(top: Path, files: Iterable[Path]) -> None:
    """Files, then every folder from theirs up to `top`, the deepest first."""
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
    """Make a folder and those above it that are missing; their names last, except in a folder that may not be read."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(made):
        with suppress(PermissionError):
            sync(each.parent)
