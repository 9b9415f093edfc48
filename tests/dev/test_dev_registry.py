"""`millstream dev kafka --registry`: a schema registry beside the broker, which answers when its address is printed and goes with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from millstream.dev.broker_jars import BROKER_JARS
from millstream.dev.registry import ARCHIVE, unpack
from millstream.jvm.jars import locate

_ABSENT = any(found.path is None for found in locate([*BROKER_JARS, ARCHIVE]))
pytestmark = [pytest.mark.spark, pytest.mark.server, pytest.mark.skipif(_ABSENT, reason="the servers' archives are not in the cache")]


def test_both_addresses_are_printed_and_ctrl_c_stops_both() -> None:
    words = [sys.executable, "-m", "millstream.cli", "dev", "kafka", "--port", "0", "--registry", "--registry-port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    process.stdout.readline()
    url = process.stdout.readline().strip()
    assert _get(f"{url}/subjects") == []
    assert _get(f"{url}/config")["compatibilityLevel"] == "BACKWARD"
    jvms = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=200)
    assert (len(jvms), process.returncode) == (2, 0)
    assert not any(jvm.is_running() for jvm in jvms)


def test_the_archive_is_unpacked_once(tmp_path: Path) -> None:
    archive = locate([ARCHIVE])[0].path
    assert archive is not None
    (tmp_path / archive.name).symlink_to(archive)
    first = unpack(tmp_path / archive.name)
    (first / "mark").touch()
    assert (unpack(tmp_path / archive.name) / "mark").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
