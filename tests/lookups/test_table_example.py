"""The example with dynamic tables runs as its README says: a table loaded from the shell, and one that the stream fills."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

pytestmark = pytest.mark.spark
FOLDER = Path(__file__).parents[2] / "examples" / "11-dynamic-table"


def test_the_example_runs(tmp_path: Path, warm: Callable[..., Done]) -> None:
    here = shutil.copytree(FOLDER, tmp_path / "example")
    said = ""
    for arguments in (["table", "load", "alerts.yaml", "watched", "watched.csv"], ["run", "alerts.yaml"]):
        done = warm(*arguments, folder=here)
        assert done.returncode == 0, done.stderr
        said += done.stdout + done.stderr
    assert "2 rows written" in said
    for row in ('"id":2,"user":"bob","tier":"amber","large_card":true', '"id":3,"user":"eve","tier":"red","large_card":false', '"id":4'):
        assert row in said
    assert '"id":1' not in said
