"""Ctrl-C ends a command with its exit code, and without a stack trace."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.engine.test_dead_jvm import jvm_of

from millstream.jvm.quiet import hush

TEXT = """
sources: {o: {type: memory, rows: [{id: 1}]}}
sinks: {out: {type: memory, from: o}}
tests: [{name: t, given: {o: [{id: 1}]}, expect: {out: [{id: 1}]}}]
"""


@pytest.mark.spark
def test_a_test_that_is_interrupted_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(TEXT)
    command = [sys.executable, "-m", "millstream.cli", "test", "p.yaml"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while not jvm_of(running) and time.monotonic() < deadline:  # somewhere in the start of Spark; wherever it is, no trace may come
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=300)
    assert "Traceback" not in said
    assert running.returncode in (0, 130)


def test_the_exit_code_does_not_depend_on_the_line_that_was_interrupted(tmp_path: Path) -> None:
    interrupted = "import os, signal; os.kill(os.getpid(), signal.SIGINT); [0 for _ in range(10**7)]"
    (tmp_path / "p.py").write_text(
        f"from millstream import cli\ncli.application = lambda *_: lambda *_, **__: exec({interrupted!r})\ncli.main()\n"
    )
    done = subprocess.run([sys.executable, "-m", "p"], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_only_that_message_is_held_back(caplog: pytest.LogCaptureFixture) -> None:
    hush()
    logging.getLogger().error("KeyboardInterrupt while sending command.")
    logging.getLogger().error("something else")
    assert [record.message for record in caplog.records] == ["something else"]
