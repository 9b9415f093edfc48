"""Run named parts, and print how long each took, the CPU time that it used and the slowest tests; a part that fails fails the whole.

Parts come one after the other. One whose name begins with `+` runs beside the part before it; what it prints is shown when it is done.
Parts find the folder `$PARTS`, which is gone in the end: reports of pytest (`--junitxml`) that they leave there are read.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

SLOWEST = 20


@dataclass
class Part:
    """A command that runs."""

    name: str
    process: subprocess.Popen[bytes]
    started: float
    said: IO[bytes] | None
    """What it prints, when it is not shown at once."""
    seconds: float = 0.0
    cpu: float = 0.0
    """Its own CPU time and that of all processes that it has waited for."""

    @classmethod
    def begin(cls, name: str, command: str, folder: str) -> Part:
        said = tempfile.TemporaryFile() if name.startswith("+") else None  # noqa: SIM115 — it lives as long as the part
        print(f"\n== {name}", flush=True)
        environ, errors = {**os.environ, "PARTS": folder}, subprocess.STDOUT if said else None
        process = subprocess.Popen(["bash", "-c", command], stdout=said, stderr=errors, env=environ)
        return cls(name.lstrip("+ "), process, time.monotonic(), said)

    def running(self) -> bool:
        if not self.seconds:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.seconds, self.cpu = time.monotonic() - self.started, usage.ru_utime + usage.ru_stime
        return not self.seconds

    def show(self) -> None:
        if self.said is not None:
            self.said.seek(0)
            print(f"\n== {self.name}\n{self.said.read().decode(errors='replace')}", flush=True)


def main(arguments: list[str]) -> int:
    """`timed NAME COMMAND NAME COMMAND …`"""
    done: list[Part] = []
    together: list[Part] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="parts-") as folder:
        for name, command in zip(arguments[::2], arguments[1::2], strict=True):
            if not name.startswith("+"):
                done += _ended(together)
            together.append(Part.begin(name, command, folder))
        done += _ended(together)
        tests = durations(Path(folder))
    if tests:
        print(f"\n== the slowest {min(SLOWEST, len(tests))} of {len(tests):,} tests")
        for seconds, test in tests[:SLOWEST]:
            print(f"  {seconds:7.1f} s  {test}")
    print("\n== time\n     passed       CPU")
    for part in done:
        print(f"  {part.seconds:7.1f} s {part.cpu:7.1f} s  {part.name}{'' if part.process.returncode == 0 else '  FAILED'}")
    print(f"  {time.monotonic() - started:7.1f} s {sum(part.cpu for part in done):7.1f} s  in all")
    return 1 if any(part.process.returncode for part in done) else 0


def durations(folder: Path) -> list[tuple[float, str]]:
    """The seconds of each test that a report in the folder names, set-up included; the slowest first."""
    reports = [ElementTree.parse(path) for path in folder.glob("*.xml")]
    cases = [case.attrib for report in reports for case in report.iter("testcase")]
    return sorted(((float(case["time"]), f"{case['classname'].replace('.', '/')}.py::{case['name']}") for case in cases), reverse=True)


def _ended(together: list[Part]) -> list[Part]:
    parts, together[:] = list(together), []
    while sum(part.running() for part in parts):
        time.sleep(0.05)
    for part in parts:
        part.show()
    return parts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
