"""The Deno child: without permissions, and not left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from millstream.scripts.engine_files import deno_main
from millstream.worker.scripts.child import Child
from millstream.worker.scripts.engines import LimitError, Limits

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


def test_its_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    child = Child(ECHO, deno_main(), json.dumps({}), LIMITS)
    assert list(tmp_path.iterdir()) != []
    child.close()
    assert list(tmp_path.iterdir()) == []
