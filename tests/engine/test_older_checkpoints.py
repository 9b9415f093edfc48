"""A checkpoint of an earlier version is continued: every row once, with the state of windows and totals.

`checkpoints/older.tar.gz` holds a pipeline's folder after a run of the version before run objects existed (commit 3f8c8b0): two files were
read, one window is open. `@FOLDER@` stands for its place.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.warm import Done

from millstream import committed_files

pytestmark = pytest.mark.spark
ARCHIVE = Path(__file__).parent / "checkpoints" / "older.tar.gz"
LATER = [("ada", "2024-01-01T00:01:20Z", 4), ("bob", "2024-01-01T00:03:00Z", 1), ("cy", "2024-01-01T00:03:00Z", 7)]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The folder, with a third file of input."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    for file in [*tmp_path.glob(".millstream/p/queries/*/sources/*/*"), *tmp_path.glob(".millstream/p/_millstream/delivered/*")]:
        file.write_text(file.read_text().replace("@FOLDER@", str(tmp_path)))
    rows = [{"user": user, "at": at, "n": n} for user, at, n in LATER]
    (tmp_path / "in" / "2.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    files = committed_files(str(folder / "out" / name))
    return [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]


def test_every_row_comes_once_and_state_goes_on(older: Path, warm: Callable[..., Done]) -> None:
    done = warm("run", "p.yaml", folder=older)
    assert done.returncode == 0, done.stderr
    assert sorted(row["n"] for row in lines(older, "large")) == [2, 4, 5, 7]
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [4, 7]  # the store knows what was printed before
    windows = {(row["user"], row["window_start"][14:16], row["clicks"]) for row in lines(older, "windows")}
    assert windows == {("ada", "00", 1), ("bob", "00", 1), ("ada", "01", 2)}
    assert {row["user"]: row["total"] for row in lines(older, "totals")} == {"ada": 7, "bob": 6, "cy": 7}
