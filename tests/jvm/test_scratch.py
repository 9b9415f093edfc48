from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from millstream.jvm.scratch import make_scratch, sweep

KILLED = "import os, sys; from millstream.jvm.scratch import make_scratch; print(make_scratch().path, flush=True); os.kill(os.getpid(), 9)"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_removing_it_leaves_nothing(temporary: Path) -> None:
    scratch = make_scratch()
    (scratch.path / "file").touch()
    scratch.remove()
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(temporary: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED],
        capture_output=True,
        text=True,
        check=False,
        env={"TMPDIR": str(temporary), "PYTHONPATH": ":".join(sys.path)},
    )
    left = Path(ended.stdout.strip())
    assert left.is_dir()
    scratch = make_scratch()
    assert not left.exists()
    scratch.remove()


def test_what_is_in_use_stays(temporary: Path) -> None:
    scratch = make_scratch()
    sweep(temporary)
    assert scratch.path.is_dir()
    scratch.remove()


def test_folders_of_others_stay(temporary: Path) -> None:
    (temporary / "millstream-logs").mkdir()
    (temporary / "millstream-logs" / "owner").touch()
    sweep(temporary)
    assert (temporary / "millstream-logs").is_dir()
