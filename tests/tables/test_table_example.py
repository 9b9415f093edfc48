"""The example with dynamic tables runs as its README says: a table loaded from the shell, and one that the stream fills."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "examples" / "11-dynamic-table"


def test_the_example_runs(tmp_path: Path) -> None:
    here = shutil.copytree(FOLDER, tmp_path / "example")
    said = ""
    for arguments in (["table", "load", "alerts.yaml", "watched", "watched.csv"], ["run", "alerts.yaml"]):
        command = [sys.executable, "-m", "millstream.cli", *arguments]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        said += done.stdout + done.stderr
    assert "2 rows written" in said
    for row in ('"id":2,"user":"bob","tier":"amber","large_card":true', '"id":3,"user":"eve","tier":"red","large_card":false', '"id":4'):
        assert row in said
    assert '"id":1' not in said
