"""Run named parts and print how long each took; all of them run, and any failure fails the whole.

Parts come one after the other. One whose name begins with `+` runs beside the part before it: tests that mostly wait for servers leave
a core for others. What it says is shown when it is done.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO


@dataclass
class Part:
    """A command that runs."""

    name: str
    process: subprocess.Popen[bytes]
    started: float
    said: IO[bytes] | None
    """What it prints, when it is not shown at once."""
    seconds: float = 0.0

    @classmethod
    def begin(cls, name: str, command: str) -> Part:
        said = tempfile.TemporaryFile() if name.startswith("+") else None  # noqa: SIM115 — it lives as long as the part
        print(f"\n== {name}", flush=True)
        process = subprocess.Popen(["bash", "-c", command], stdout=said, stderr=subprocess.STDOUT if said else None)
        return cls(name.lstrip("+ "), process, time.monotonic(), said)

    def running(self) -> bool:
        if not self.seconds and self.process.poll() is not None:
            self.seconds = time.monotonic() - self.started
        return not self.seconds

    def show(self) -> None:
        if self.said is not None:
            self.said.seek(0)
            print(f"\n== {self.name}\n{self.said.read().decode(errors='replace')}", flush=True)


def main(arguments: list[str]) -> int:
    """`timed NAME COMMAND NAME COMMAND …`"""
    done: list[Part] = []
    together: list[Part] = []
    for name, command in zip(arguments[::2], arguments[1::2], strict=True):
        if not name.startswith("+"):
            done += _ended(together)
        together.append(Part.begin(name, command))
    done += _ended(together)
    print("\n== time")
    for part in done:
        print(f"  {part.seconds:7.1f} s  {part.name}{'' if part.process.returncode == 0 else '  FAILED'}")
    return 1 if any(part.process.returncode for part in done) else 0


def _ended(together: list[Part]) -> list[Part]:
    parts, together[:] = list(together), []
    while sum(part.running() for part in parts):
        time.sleep(0.05)
    for part in parts:
        part.show()
    return parts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
