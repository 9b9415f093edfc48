"""The JVM and its Python workers end with the process that started them, however that ends; Ctrl-C is not theirs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.spark

SCRIPT = """
import json, signal, sys, time
from millstream.jvm.session import SessionOptions, begin
signal.signal(signal.SIGINT, signal.SIG_IGN)
session = begin(SessionOptions(master="local[1]", profile="short")).finish()
session.spark.range(4).mapInArrow(lambda batches: batches, "id long").collect()
print(json.dumps({"jvm": session.jvm.process.pid}), flush=True)
for line in sys.stdin:
    print(json.dumps({"count": session.spark.range(3).count()}), flush=True)
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MILLSTREAM_ARCHIVE": "off"},
        start_new_session=True,
    )
    yield process
    process.kill()
    process.communicate()


def answer(child: subprocess.Popen[str]) -> Any:
    assert child.stdout
    return json.loads(child.stdout.readline())


def test_the_jvm_survives_ctrl_c_and_dies_with_a_killed_python(child: subprocess.Popen[str]) -> None:
    jvm = psutil.Process(answer(child)["jvm"])
    family = [jvm, *jvm.children(recursive=True)]
    assert len(family) > 1

    os.killpg(child.pid, signal.SIGINT)
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()
    assert answer(child)["count"] == 3
    assert all(process.is_running() for process in family)

    child.kill()
    child.wait()
    _, alive = psutil.wait_procs(family, timeout=200)
    assert alive == []
