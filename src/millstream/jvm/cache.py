"""The user's cache: files that are slow to make or fetch and can be made or fetched again.

    <cache>/jars       connector jars, each checked against the lock table
    <cache>/archives   class-data archives of the JVM

Deleting all of it is always safe. `MILLSTREAM_CACHE` moves it, for images that bake it in and for hosts with a small home.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The path of the cache; nothing is created."""
    if chosen := environ.get("MILLSTREAM_CACHE"):
        return Path(chosen).expanduser().absolute()
    if base := environ.get("XDG_CACHE_HOME"):
        return Path(base) / "millstream"
    home = Path(environ.get("HOME") or Path.home())
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "millstream"


def jars_dir(environ: Mapping[str, str]) -> Path:
    return cache_dir(environ) / "jars"


def archives_dir(environ: Mapping[str, str]) -> Path:
    return cache_dir(environ) / "archives"


def writable(folder: Path) -> bool:
    """Whether files can be created in the folder, or the folder itself can be created."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def size_of(folder: Path) -> int:
    """The size of all files below; a file that disappears meanwhile counts as zero."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
