"""A JVM that does not come up, played by shell scripts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.errors import SetupError
from millstream.jvm.arguments import JvmOptions
from millstream.jvm.java import Java
from millstream.jvm.machine import Spark
from millstream.jvm.process import Jvm, start_jvm
from millstream.jvm.scratch import make_scratch

Start = Callable[[str], Jvm]


@pytest.fixture
def start(pretend: Callable[[str], Java], tmp_path: Path) -> Start:
    """Start a made-up JVM; the script can be another one each time."""
    java, logs = pretend("exit 1"), tmp_path / "logs"

    def go(script: str) -> Jvm:
        java.executable.write_text(f"#!/bin/sh\n{script}\n")
        return start_jvm(JvmOptions(java, Spark(tmp_path, "4.1.4"), [], make_scratch(), log_dir=logs))

    return go


def failure(jvm: Jvm, timeout: float = 10.0) -> str:
    with pytest.raises(SetupError) as caught:
        jvm.connect(timeout)
    jvm.close()
    return str(caught.value)


def test_a_jvm_that_dies_is_reported_with_the_end_of_its_log(start: Start) -> None:
    text = failure(start("for i in $(seq 40); do echo line $i; done; echo out of memory >&2; exit 3"))
    assert "MS044" in text
    assert "code 3" in text
    assert "out of memory" in text
    assert "line 40" in text
    assert "line 2\n" not in text


def test_frames_of_a_stack_trace_are_left_out(start: Start) -> None:
    text = failure(start("printf 'Exception: reason\\n\\tat org.example.Main\\n'; exit 1"))
    assert "Exception: reason" in text
    assert "org.example" not in text


def test_a_jvm_that_is_silent_is_ended(start: Start) -> None:
    jvm = start("echo thinking; exec sleep 60")
    assert "did not answer in 0.3 s" in failure(jvm, 0.3)
    assert not jvm.alive


def test_nothing_of_it_reaches_the_terminal(start: Start, capfd: pytest.CaptureFixture[str]) -> None:
    failure(start("echo on stdout; echo on stderr >&2; exit 1"))
    assert capfd.readouterr() == ("", "")


def test_its_scratch_space_goes_away(start: Start) -> None:
    jvm = start("exit 1")
    failure(jvm)
    assert not jvm.scratch.path.exists()


def test_the_log_of_the_run_before_is_kept(start: Start, tmp_path: Path) -> None:
    for word in ("first", "second"):
        failure(start(f"echo {word}; exit 1"))
    assert (tmp_path / "logs" / "jvm.previous.out").read_text() == "first\n"


def test_it_is_in_a_session_of_its_own(start: Start) -> None:
    jvm = start("exec sleep 60")
    try:
        assert os.getsid(jvm.process.pid) == jvm.process.pid
        assert os.getsid(0) != jvm.process.pid
    finally:
        jvm.close()


def test_closing_does_not_wait_for_one_that_hangs(start: Start) -> None:
    jvm = start("trap '' TERM; exec sleep 60")
    began = time.monotonic()
    jvm.close()
    assert time.monotonic() - began < 30
    assert not jvm.alive


def test_with_patience_it_leaves_by_itself_when_its_input_ends(start: Start) -> None:
    jvm = start("cat; echo bye")
    jvm.close(patience=10)
    assert jvm.process.returncode == 0
    assert jvm.last_words() == "bye"
