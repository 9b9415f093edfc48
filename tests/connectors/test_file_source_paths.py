"""Which files are read: directories, patterns, one file, names of every kind; and only those that were there, for a bounded source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.connectors.file.source import FileSource
from millstream.errors import RunError

pytestmark = pytest.mark.spark
NAMES = ["a.json", "b c.json", "ü#%20+.json", "it's.json", "x[1]{2}.json"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "d é [1]").mkdir()
    return tmp_path / "d é [1]"


def put(path: Path, *ids: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": number}) + "\n" for number in ids), encoding="utf-8")


def source(path: Path | str, **options: Any) -> FileSource:
    return FileSource(path=str(path), format="json", **{"schema": {"id": "int64"}, "mode": {"type": "bounded"}} | options)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_names_of_every_kind_are_read_and_hidden_ones_are_not(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    for number, name in enumerate([*NAMES, "_hidden.json", ".hidden.json", "_dir/x.json"]):
        put(folder / name, number)
    assert ids(rows(source(folder).open(context()).read(spark))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", NAMES)
def test_one_file_can_be_the_source(spark: Any, folder: Path, context: Callable, rows: Callable, name: str) -> None:
    put(folder / name, 1)
    put(folder / "another.json", 2)
    assert ids(rows(source(folder / name).open(context()).read(spark))) == [1]


def test_a_pattern_chooses(spark: Any, tmp_path: Path, context: Callable, rows: Callable) -> None:
    for number, name in enumerate(["2026-01/a.json", "2026-02/a.json", "2025-01/a.json", "2026-01/b.txt"]):
        put(tmp_path / "in" / name, number)
    assert ids(rows(source(tmp_path / "in/2026-*/*.json").open(context()).read(spark))) == [0, 1]


def test_sub_directories_are_read_unless_told_otherwise(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    for number, name in enumerate(["a.json", "sub/a.json", "k=1/a.json", "k=1/sub/a.json"]):
        put(folder / name, number)
    assert ids(rows(source(folder).open(context("deep")).read(spark), "deep")) == [0, 1, 2, 3]
    assert ids(rows(source(folder, recursive=False).open(context("flat")).read(spark), "flat")) == [0, 2]


def test_a_bounded_source_never_reads_what_came_later(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    put(folder / "a.json", 1)
    put(folder / "b'c.json", 2)
    assert ids(rows(source(folder).open(context()).read(spark))) == [1, 2]
    (folder / "late.json").write_text("this would fail if it were opened")
    assert rows(source(folder).open(context()).read(spark)) == []
    assert ids(rows(source(folder).open(context()).read(spark), "anew")) == [1, 2]


def test_a_continuous_source_does(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    reading = source(folder, mode={"type": "continuous"})
    put(folder / "a.json", 1)
    assert ids(rows(reading.open(context()).read(spark))) == [1]
    put(folder / "late.json", 2)
    assert ids(rows(reading.open(context()).read(spark))) == [2]


def test_a_file_with_an_old_date_is_not_forgotten(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    import os

    reading = source(folder, mode={"type": "continuous"})
    put(folder / "new.json", 1)
    assert ids(rows(reading.open(context()).read(spark))) == [1]
    put(folder / "old.json", 2)
    os.utime(folder / "old.json", (1_600_000_000, 1_600_000_000))
    assert ids(rows(reading.open(context()).read(spark))) == [2]


def test_files_per_epoch_are_limited(spark: Any, folder: Path, context: Callable, drain: Callable) -> None:
    for number in range(3):
        put(folder / f"{number}.json", number)
    assert [len(epoch) for epoch in drain(source(folder, max_files_per_epoch=2).open(context()).read(spark))] == [2, 1]


@pytest.mark.parametrize("options", [{}, {"schema": None}, {"mode": {"type": "continuous"}}], ids=["bounded", "inferred", "continuous"])
def test_a_path_that_is_not_there(spark: Any, tmp_path: Path, context: Callable, options: dict) -> None:
    with pytest.raises(RunError, match=r"MS060.*does not exist"):
        source(tmp_path / "nowhere", **options).open(context()).read(spark)


@pytest.mark.parametrize("options", [{}, {"schema": None, "mode": {"type": "continuous"}}], ids=["bounded", "inferred"])
def test_a_directory_without_files(spark: Any, folder: Path, context: Callable, options: dict) -> None:
    (folder / "_hidden.json").write_text("{}")
    with pytest.raises(RunError, match=r"MS060.*holds no file"):
        source(folder, **options).open(context()).read(spark)


def test_with_a_schema_a_continuous_source_may_start_before_its_files(spark: Any, folder: Path, context: Callable, rows: Callable) -> None:
    assert rows(source(folder, mode={"type": "continuous"}).open(context()).read(spark)) == []


def test_a_directory_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from millstream.connectors.file.read import paths

    monkeypatch.setattr(paths.os, "access", lambda *_: False)
    with pytest.raises(RunError, match=r"MS061.*`orders` has no permission to read"):
        paths.require_readable(str(folder), "orders")
