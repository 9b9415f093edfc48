from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millstream.jvm.cache import cache_dir, size_of, writable


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"MILLSTREAM_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/millstream"),
        ({"HOME": "/c"}, "/c/.cache/millstream"),
    ],
    ids=["our own variable wins", "then the desktop's", "then the home"],
)
def test_the_cache_is_where_the_first_variable_says(environ: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_dir(environ) == Path(expected)


def test_on_macos_the_cache_is_in_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir({"HOME": "/c"}) == Path("/c/Library/Caches/millstream")


def test_asking_for_the_cache_creates_nothing(tmp_path: Path) -> None:
    cache_dir({"MILLSTREAM_CACHE": str(tmp_path / "cache")})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_be_made_is_writable(tmp_path: Path) -> None:
    assert writable(tmp_path / "a" / "b")


def test_a_folder_below_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not writable(tmp_path / "file" / "b")


def test_the_size_counts_files_at_every_depth(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"123")
    (tmp_path / "y").write_bytes(b"4567")
    assert size_of(tmp_path) == 7
