"""A JVM that dies under a run is told as such; killed, it is started again and nothing is lost; out of memory, it is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream import committed_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
PIPELINE = """
sources: {{rows: {{type: generator, rows: 3000, rows_per_second: 400, fields: {{id: {{type: sequence}}}}}}}}
sinks: {{out: {{type: file, from: rows, path: out, format: json}}}}
settings: {{restart: {{limit: {limit}, backoff: 100ms}}}}
"""
HUGE = """
sources: {rows: {type: memory, rows: [{n: 1}]}}
transforms: {big: {type: sql, sql: "SELECT length(array_join(sequence(1, 200000000), ',')) AS n FROM rows"}}
sinks: {out: {type: file, from: big, path: out, format: json}}
settings: {driver_memory: 512MB}
"""


def started(folder: Path, text: str, *more: str) -> subprocess.Popen[str]:
    """Run a pipeline, and more of its kind beside it in the same Spark."""
    for name in ("p", *more):
        (folder / f"{name}.yaml").write_text(text.replace("path: out", f"path: out/{name}"))
    command = [sys.executable, "-m", "millstream.cli", "run", *(f"{name}.yaml" for name in ("p", *more)), "--profile", "short"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def jvm_of(process: subprocess.Popen[str]) -> int | None:
    """The Java child of a run."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == process.pid and "java" in (entry / "cmdline").read_text():
                return int(entry.name)
        except (OSError, IndexError):
            continue
    return None


def kill_jvm(process: subprocess.Popen[str], folder: Path) -> None:
    """Kill the JVM once an epoch is committed."""
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline and process.poll() is None:
        if list(folder.glob(".millstream/p/queries/rows/commits/[0-9]*")) and (pid := jvm_of(process)):
            os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.05)
    raise AssertionError("the run came to no epoch")


@pytest.mark.parametrize("others", [(), ("q",)], ids=["alone", "shared"])
def test_a_killed_jvm_is_replaced_and_no_row_is_lost_or_doubled(tmp_path: Path, others: tuple[str, ...]) -> None:
    process = started(tmp_path, PIPELINE.format(limit=3), *others)
    kill_jvm(process, tmp_path)
    _, told = process.communicate(timeout=600)
    assert process.returncode == 0, told
    assert told.count("Spark's JVM was killed by SIGKILL; restart 1") == 1 + len(others)
    for name in ("p", *others):
        rows = [line for file in committed_files(str(tmp_path / "out" / name)) for line in Path(file).read_text().splitlines()]
        assert len(rows) == len(set(rows)) == 3000


def test_without_restarts_it_is_a_temporary_failure(tmp_path: Path) -> None:
    process = started(tmp_path, PIPELINE.format(limit=0))
    kill_jvm(process, tmp_path)
    _, told = process.communicate(timeout=600)
    assert process.returncode == 75, told
    assert "MS156" in told and "Traceback" not in told


def test_out_of_memory_says_what_to_do(tmp_path: Path) -> None:
    process = started(tmp_path, HUGE)
    _, told = process.communicate(timeout=600)
    assert process.returncode == 1, told
    assert "MS155" in told and "settings.driver_memory" in told and "Traceback" not in told
