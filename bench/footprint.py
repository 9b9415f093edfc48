"""How small can it be? Memory and CPU of a quiet pipeline, and rows per second on half a core."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from bench.figures import Figure, millstream

QUIET = """
sources: {files: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: continuous, poll_interval: 5s}}}
transforms: {some: {type: filter, from: files, where: id > 0}}
sinks: {out: {type: blackhole, from: some}}
"""
BUSY = """
sources: {g: {type: generator, rows_per_epoch: 200_000, fields: {id: {type: sequence}, x: {type: uniform, min: 0.0, max: 1.0}}}}
transforms: {some: {type: filter, from: g, where: x > 0.5}}
sinks: {out: {type: blackhole, from: some}}
"""


def measure() -> list[Figure]:
    figures = []
    for profile in ("long", "small"):
        with tempfile.TemporaryDirectory() as folder:
            memory, cpu = _quiet(Path(folder), profile)
        figures += [
            Figure(f"quiet pipeline, profile {profile}: memory (RSS, Python and JVM)", memory, "MB"),
            Figure(f"quiet pipeline, profile {profile}: CPU, share of a core", cpu, ""),
        ]
    for profile in ("long", "small"):
        with tempfile.TemporaryDirectory() as folder:
            figures.append(Figure(f"rows/s on half a core, profile {profile}", _half_a_core(Path(folder), profile), "rows/s"))
    return figures


def _quiet(folder: Path, profile: str) -> tuple[float, float]:
    (folder / "in").mkdir()
    (folder / "in/a.json").write_text('{"id":1}\n')
    (folder / "p.yaml").write_text(QUIET)
    process = subprocess.Popen(millstream("run", "p.yaml", "--profile", profile), cwd=folder, stderr=subprocess.DEVNULL)
    try:
        _wait_for(folder / ".millstream/p/queries/files/commits/0")
        time.sleep(15)
        before = _cpu(process.pid)
        time.sleep(30)
        return sum(member.memory_info().rss for member in _family(process.pid)) / 2**20, (_cpu(process.pid) - before) / 30
    finally:
        _end(process)


def _half_a_core(folder: Path, profile: str) -> float:
    """Half a core by turns: the whole family is stopped and continued every 50 ms, on one core."""
    (folder / "p.yaml").write_text(BUSY)
    command = ["taskset", "-c", "0", *millstream("run", "p.yaml", "--profile", profile)]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    commits = folder / ".millstream/p/queries/g/commits"
    try:
        _wait_for(commits / "0")
        _throttled(process.pid, 20)
        first, started = _last(commits), time.monotonic()
        _throttled(process.pid, 40)
        return (_last(commits) - first) * 200_000 / (time.monotonic() - started)
    finally:
        _end(process)


def _throttled(pid: int, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        members = _family(pid)
        for pause, number in ((0.05, signal.SIGSTOP), (0.05, signal.SIGCONT)):
            for member in members:
                if member.is_running():
                    os.kill(member.pid, number)
            time.sleep(pause)


def _family(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _cpu(pid: int) -> float:
    return sum(sum(member.cpu_times()[:2]) for member in _family(pid))


def _last(commits: Path) -> int:
    return max(int(path.name) for path in commits.iterdir() if path.name.isdigit())


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 90
    while not path.exists():
        if time.monotonic() > until:
            raise RuntimeError(f"{path} did not come")
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    for member in _family(process.pid):
        os.kill(member.pid, signal.SIGCONT)
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
