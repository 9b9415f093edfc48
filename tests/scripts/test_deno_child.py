"""The Deno child: without permissions, and not left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from millstream.scripts.engine_files import deno_main
from millstream.worker.scripts.child import Child
from millstream.worker.scripts.engines import LimitError, Limits, kept
from millstream.worker.scripts.pool import lend

LIMITS = Limits(0.3, 64 << 20)
ECHO = "((options) => (text) => text)"
LOOP = "((options) => (text) => { for (;;) {} })"

ORPHAN = """
import sys
from millstream.scripts.engine_files import deno_main
from millstream.worker.scripts.child import Child
from millstream.worker.scripts.engines import Limits
child = Child(%r, deno_main(), "{}", Limits(1, 64 << 20))
print(child.pid, flush=True)
child.call("x", Limits(0.5, 64 << 20)) if len(sys.argv) > 1 else input()
"""


def test_frames_of_any_size_come_back() -> None:
    child = Child(ECHO, deno_main(), "{}", LIMITS)
    try:
        for text in ("", "ä", "x" * 5_000_000):
            assert child.call(text, Limits(10, 64 << 20)) == text
    finally:
        child.close()


def test_an_answer_that_is_larger_than_the_memory_is_not_read() -> None:
    child = Child("((options) => (text) => 'x'.repeat(9e6))", deno_main(), "{}", Limits(5, 8 << 20))
    try:
        with pytest.raises(LimitError, match="memory"):
            child.call("", Limits(5, 8 << 20))
    finally:
        child.close()


PROBES = [
    "Deno.readTextFileSync('/etc/hostname')",
    "Deno.env.get('HOME')",
    "new Deno.Command('/bin/true').outputSync()",
    "Deno.writeTextFileSync('x', 'x')",
    "Deno.networkInterfaces()",
    "Deno.kill(1)",
]


@pytest.mark.parametrize("probe", PROBES)
def test_the_process_itself_has_no_permissions(probe: str) -> None:
    """Below the sandbox of the prelude there is Deno's: this code runs in place of the prelude."""
    prelude = f"((options) => (text) => {{ try {{ return 'got ' + {probe}; }} catch (error) {{ return error.name; }} }})"
    child = Child(prelude, deno_main(), "{}", LIMITS)
    try:
        assert child.call("", Limits(5, 64 << 20)) in {"NotCapable", "PermissionDenied"}
    finally:
        child.close()


def start_orphan(prelude: str, *words: str) -> tuple[subprocess.Popen[str], psutil.Process]:
    command = [sys.executable, "-c", ORPHAN % prelude, *words]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    return worker, psutil.Process(int(worker.stdout.readline()))


@pytest.mark.parametrize("busy", [False, True], ids=["waiting", "in a loop"])
def test_it_ends_when_its_worker_is_killed(busy: bool) -> None:
    worker, child = start_orphan(LOOP if busy else ECHO, *(["call"] if busy else []))
    time.sleep(0.1)
    assert child.is_running()
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("engine", ["deno"], indirect=True)
@pytest.mark.parametrize("text", ["(row) => row", "(rows) => rows"], ids=["row", "batch"])
def test_a_child_that_has_died_while_it_waited_costs_no_row(runner: Callable, text: str) -> None:
    batch = pa.RecordBatch.from_pylist([{"x": 1}], pa.schema([("x", pa.int32())]))
    prepared = runner(text, batch.schema, mode="batch" if text.startswith("(rows)") else "row")
    expected = [row for result in prepared.run([batch]) for row in result.to_pylist()]
    ((_, child),) = kept("idle")
    os.kill(child.pid, signal.SIGKILL)
    child._process.wait()
    assert [row for result in prepared.run([batch]) for row in result.to_pylist()] == expected


@pytest.mark.parametrize("engine", ["deno"], indirect=True)
def test_nor_does_one_that_dies_between_two_batches(runner: Callable) -> None:
    batch = pa.RecordBatch.from_pylist([{"x": 1}], pa.schema([("x", pa.int32())]))
    prepared = runner("(row) => row", batch.schema)

    with lend(prepared.spec) as lender:
        engine = lender.engine
    assert isinstance(engine, Child)

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        os.kill(engine.pid, signal.SIGKILL)
        engine._process.wait()
        yield batch

    rows = [row for result in prepared.run(batches()) for row in result.to_pylist()]
    assert [row["_reject"] for row in rows] == [None, None]


def test_its_folder_is_gone_once_it_has_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may end in a way in which nothing is cleaned up."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    child = Child(ECHO, deno_main(), json.dumps({}), LIMITS)
    try:
        assert list(tmp_path.iterdir()) == []
        assert child.call("x", Limits(5, 64 << 20)) == "x"
    finally:
        child.close()
    assert list(tmp_path.iterdir()) == []
