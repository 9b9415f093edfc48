"""Spark's local files: permissions are set without a process for each file, and the Java classes that do it are those of the source."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tools.jar import jar_of

from millstream.jvm.launch import OWN_CLASSES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MADE = """
import json, subprocess
from pathlib import Path
from millstream.jvm.session import SessionOptions, begin
session = begin(SessionOptions(master="local[1]", profile="short", conf={conf})).finish()
jvm = session.spark._jvm
files = jvm.org.apache.hadoop.fs.FileSystem.get(session.spark._jsparkSession.sessionState().newHadoopConf())
home = Path("made").absolute()
home.mkdir()
home.chmod(0o2775)  # what is made in it belongs to its group
files.mkdirs(jvm.org.apache.hadoop.fs.Path(f"{{home}}/a/b"))
files.create(jvm.org.apache.hadoop.fs.Path(f"{{home}}/a/b/c")).close()
files.setPermission(jvm.org.apache.hadoop.fs.Path(f"{{home}}/a/b/c"), jvm.org.apache.hadoop.fs.permission.FsPermission("640"))
modes = {{str(path.relative_to(home)): oct(path.stat().st_mode & 0o7777) for path in sorted(home.rglob("*"))}}
kind = files.getClass().getName()
session.close()
print(json.dumps({{"modes": modes, "kind": kind}}))
"""


def test_the_jar_is_what_the_source_says(spark: SparkSession) -> None:
    assert jar_of(spark._jvm) == OWN_CLASSES.read_bytes(), "run `python -m tools.jar`"


@pytest.fixture
def chmod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command is replaced by one that also notes its arguments in the file that is returned."""
    notes = tmp_path / "notes"
    notes.touch()
    command = tmp_path / "bin" / "chmod"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\necho "$@" >> {notes}\nexec {shutil.which("chmod")} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    return notes


@pytest.mark.parametrize(("kind", "sums"), [("RawLocalFiles", set()), ("LocalFiles", {"a/b/.c.crc"})])
def test_files_have_their_permissions_and_no_process_starts(script: Callable[..., Any], chmod: Path, kind: str, sums: set[str]) -> None:
    found = script(MADE.format(conf={"spark.hadoop.fs.file.impl": f"millstream.{kind}"}))
    assert found["kind"] == f"millstream.{kind}"
    umask = os.umask(0)
    os.umask(umask)
    assert set(found["modes"]) == {"a", "a/b", "a/b/c"} | sums
    assert found["modes"]["a/b/c"] == "0o640"
    assert found["modes"]["a"] == found["modes"]["a/b"] == oct(0o2000 | (0o777 & ~umask))
    assert chmod.read_text() == ""


def test_hadoops_own_class_starts_processes(script: Callable[..., Any], chmod: Path) -> None:
    script(MADE.format(conf={"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem"}))
    assert "a/b/c" in chmod.read_text()
