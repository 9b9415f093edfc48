"""Scratch space of a JVM: a temporary folder that its process holds a lock on.

Closing a session removes it. A process that was killed cannot, so the next one does: a folder whose lock is free has no owner any
more. The lock, not a process id, decides: ids come back, and containers that share a folder do not share ids.
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
    """The folder, and the open file that says it is in use."""

    path: Path
    hold: IO[bytes]

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.hold.close()


def make_scratch() -> Scratch:
    """A new folder; those that nobody owns any more are removed first."""
    sweep(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    unseen = path / "new"  # locked before a sweep can find it
    hold = unseen.open("wb")
    fcntl.flock(hold, fcntl.LOCK_EX)
    unseen.rename(path / _LOCK)
    return Scratch(path, hold)


def sweep(folder: Path) -> None:
    """Remove what processes that are gone have left here."""
    for lock in folder.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("r+b") as file:  # another user's folder, one just going away, or one in use
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
