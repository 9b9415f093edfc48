"""What a killed run leaves behind: its JVM ends a moment later, and still writes and removes files meanwhile."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path


def await_end(folder: Path, seconds: float = 60) -> None:
    """Wait until no other process works in a folder, so that it can be copied."""
    deadline = time.monotonic() + seconds
    while found := _working_in(folder):
        assert time.monotonic() < deadline, f"still running: {found}"
        time.sleep(0.05)


def _working_in(folder: Path) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and (entry / "cwd").readlink().is_relative_to(folder.resolve()):
                found.append(int(entry.name))
    return found
