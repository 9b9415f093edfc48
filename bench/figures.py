"""What a measurement is, and how one is taken: a process, its wall time, and the CPU time of it and all its children."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    """The value must not be above it; with `floor`, not below."""
    floor: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        met = self.value >= self.bar if self.floor else self.value <= self.bar
        return f"{'met' if met else 'MISSED'} (bar: {'≥' if self.floor else '≤'} {self.bar:g})"

    def __str__(self) -> str:
        return f"  {self.name:<58} {self.value:>12,.3f} {self.unit:<8} {self.verdict}{'  ' + self.note if self.note else ''}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took."""

    wall: float
    cpu: float
    output: str


def cost_of(command: list[str], cwd: Path | None = None, **environ: str) -> Cost:
    """Run once. Failing is an error."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environ}  # compiled once, as everywhere
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout)


def python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "bench" / "scripts" / script), *arguments]


def module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"bench.{name}", *arguments]


def millstream(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "millstream.cli", *arguments]


def cpu_of(roots: set[int], without: frozenset[int] = frozenset()) -> float:
    """Seconds of these processes and of all that they have started, but for some."""
    ticks, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    counted = set(roots)
    for _ in range(6):
        counted |= {pid for pid, parent in parents.items() if parent in counted and pid not in without}
    return sum(ticks.get(pid, 0) for pid in counted) / os.sysconf("SC_CLK_TCK")


def environment(name: str, *packages: str) -> Path:
    """The interpreter of a virtual environment with these packages, made once, in the user's cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream" / name
    interpreter = base / "bin" / "python"
    if not (base / "ready").exists():
        venv.create(base, with_pip=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "-q", *packages], check=True, stdout=sys.stderr)
        (base / "ready").touch()
    return interpreter


def median(values: list[float]) -> float:
    return statistics.median(values)
