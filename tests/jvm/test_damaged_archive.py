"""An archive that is no archive, or that the JVM chokes on, costs time and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.jvm.java import find_java

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os
from millstream.jvm.session import SessionOptions, begin
from millstream.jvm.launch import archive_for
from millstream.jvm.java import find_java
from millstream.jvm.machine import find_spark

archive = archive_for(find_java(os.environ), find_spark(), os.environ)
archive.path.parent.mkdir(parents=True)
for path in (archive.path, archive.base):
    path.write_bytes(b"damaged" * 100_000)
with begin(SessionOptions(master="local[1]", profile="short")).finish() as session:
    count = session.spark.range(3).count()
    log = session.jvm.log.read_text() + session.jvm.log.with_name("jvm.out").read_text()
print(json.dumps({"count": count, "there": archive.path.exists(), "log": log}))
"""


def test_a_damaged_archive_is_passed_over_in_silence(script: Callable[..., Any], tmp_path: Path) -> None:
    facts = script(SCRIPT, MILLSTREAM_CACHE=str(tmp_path / "cache"))
    assert facts["count"] == 3
    assert facts["stderr"] == ""


def test_a_start_that_fails_with_the_archive_is_tried_without_and_the_archive_removed(
    script: Callable[..., Any], java_home: Callable[..., Path], tmp_path: Path
) -> None:
    real = find_java(os.environ).executable
    home = java_home("picky", "17.0.1", f'grep -q SharedArchiveFile "${{1#@}}" && exit 134\nexec {real} "$@"')
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    facts = script(SCRIPT, MILLSTREAM_CACHE=str(tmp_path / "cache"), JAVA_HOME=str(home))
    assert facts["count"] == 3
    assert not facts["there"]
