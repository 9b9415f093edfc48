"""Commands that take a pipeline file say so when they get a folder, and name a file in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
PLAIN = "sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {out: {type: blackhole, from: o}}\n"


@pytest.mark.parametrize("command", [("plan",), ("graph",), ("test",), ("store", "list")], ids=" ".join)
def test_the_help_names_a_file_and_the_command_for_folders(millstream: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/a.yaml").write_text(PLAIN)
    done = millstream(*command, "p")
    assert done.returncode == 78
    assert "error[MS001]: `p` is a folder, not a pipeline file" in done.stderr
    assert "help: name a pipeline file, such as `p/a.yaml`; `millstream check p` checks all pipelines in the folder" in done.stderr


def test_a_folder_without_a_pipeline_gets_no_example(millstream: Run, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    assert "= help: name a pipeline file\n" in millstream("plan", "p").stderr
