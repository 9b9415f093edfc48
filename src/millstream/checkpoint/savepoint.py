"""A savepoint is a copy of a checkpoint, which can be used as `settings.checkpoint`. The pipeline is stopped, or between two epochs.

A mark is written before the first file and removed after the last, so a checkpoint with the mark is an unfinished copy. This also works on
file systems without atomic renames. Logs, the lease and the history of runs are not copied.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from millstream.checkpoint.layout import OWN, UNFINISHED, Checkpoint
from millstream.clients.storage import LocalStorage, Storage
from millstream.errors import Diagnostic, RunError

_LEFT_BEHIND = ("logs/", f"{OWN}/lock", f"{OWN}/history/")


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds."""

    url: str
    files: int
    bytes: int


def copy(checkpoint: Checkpoint, target: Storage, *, running: bool = False) -> Copied:
    """Copy a checkpoint whose lease is held. The target must be new, empty, or an unfinished copy. While the pipeline is `running`, but has
    no epoch in progress, Spark may still remove files of old epochs: those are left out.
    """
    source = checkpoint.storage
    _require_room(source, target)
    target.put(UNFINISHED, source.url.encode())
    copied = 0
    for path in _files(source):
        try:
            _copy_file(source, target, path)
            copied += 1
        except FileNotFoundError:
            if not running or not path.startswith("queries/") or source.exists(path):
                raise
            target.delete(path)
    size = target.size()
    target.delete(UNFINISHED)
    return Copied(target.url, copied, size)


def _files(source: Storage) -> list[str]:
    """The files to copy. Planned epochs are listed first, and what they refer to is written before them: so it is found, even if Spark
    plans another epoch meanwhile.
    """
    planned = [f"queries/{query}/offsets/{name}" for query in source.names("queries") for name in source.names(f"queries/{query}/offsets")]
    others = [path for path in source.files() if "/offsets/" not in path or not path.startswith("queries/")]
    return [path for path in (*planned, *others) if not path.startswith(_LEFT_BEHIND) and not path.endswith(".tmp")]


def _require_room(source: Storage, target: Storage) -> None:
    inside = f"{target.url}/".startswith(f"{source.url}/") or f"{source.url}/".startswith(f"{target.url}/")
    if inside:
        raise RunError(_no_room(target, "one would lie inside the other"))
    if target.exists(UNFINISHED):
        _empty(target)
    elif target.names():
        raise RunError(_no_room(target, "it is not empty"))


def _empty(target: Storage) -> None:
    """Remove the files of an earlier attempt; the mark stays, so that this can be interrupted too."""
    for path in [name for name in target.names() if name != OWN] + [f"{OWN}/{name}" for name in target.names(OWN)]:
        if path != UNFINISHED:
            target.delete(path)


def _copy_file(source: Storage, target: Storage, path: str) -> None:
    if not isinstance(source, LocalStorage) or not isinstance(target, LocalStorage):
        target.put(path, source.read(path) or b"")
        return
    written: Path = target.root / path
    written.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.root / path, written)
    with written.open("rb") as file:
        os.fsync(file.fileno())


def _no_room(target: Storage, reason: str) -> Diagnostic:
    return Diagnostic("MS059", f"the copy cannot go to `{target.url}`: {reason}", help="name a folder that does not exist yet")
