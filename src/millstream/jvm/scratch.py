"""Scratch space of a JVM: a temporary folder that its process locks.

Closing a session removes it. A killed process cannot, so the next process does: a folder whose lock is free has no owner. The lock decides
and not a process id: ids are reused, and containers that share a folder do not share ids.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PREFIX = "millstream-jvm-"
_LOCK = "owner"


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder, and the open lock file."""

    path: Path
    hold: IO[bytes]

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.hold.close()


def make_scratch() -> Scratch:
    """A new folder; folders without an owner are removed first."""
    sweep(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    unseen = path / "new"  # locked before a sweep can find it
    hold = unseen.open("wb")
    fcntl.flock(hold, fcntl.LOCK_EX)
    unseen.rename(path / _LOCK)
    return Scratch(path, hold)


def sweep(folder: Path) -> None:
    """Remove the folders of dead processes."""
    for lock in folder.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("r+b") as file:  # another user's folder, one that is being removed, or one in use
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
