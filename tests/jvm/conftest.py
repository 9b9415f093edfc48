"""Made-up Javas, and scripts run in a process of their own: PySpark allows one session in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.jvm.java import Java

MakeJava = Callable[..., Path]
Script = Callable[..., Any]


@pytest.fixture
def java_home(tmp_path: Path) -> MakeJava:
    """A folder that looks like a Java: `bin/java` is a shell script, `release` names the version."""

    def make(name: str, version: str | None = None, script: str = "exit 1") -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        executable = home / "bin" / "java"
        executable.write_text(f"#!/bin/sh\n{script}\n")
        executable.chmod(0o755)
        if version:
            (home / "release").write_text(f'IMPLEMENTOR="nobody"\nJAVA_VERSION="{version}"\nOS_NAME="Linux"\n')
        return home

    return make


@pytest.fixture
def pretend(java_home: MakeJava) -> Callable[[str], Java]:
    """A Java 17 that does what the script says."""
    return lambda script: Java(java_home("pretend", "17.0.1", script) / "bin" / "java", 17, "test")


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    """Run Python code in a new process and folder; its last line of output is JSON and comes back as a value."""

    def run(code: str, **environ: str) -> Any:
        folder = tmp_path_factory.mktemp("script")
        (folder / "script.py").write_text(code)
        settings = {**os.environ, "MILLSTREAM_ARCHIVE": "off", **environ}
        ended = subprocess.run(
            [sys.executable, folder / "script.py"], cwd=folder, env=settings, capture_output=True, text=True, timeout=400, check=False
        )
        assert ended.returncode == 0, ended.stderr
        facts = json.loads(ended.stdout.splitlines()[-1])
        return facts | {
            "stdout": ended.stdout.splitlines()[:-1],
            "stderr": ended.stderr,
            "files": sorted(path.name for path in folder.iterdir()),
        }

    return run
