"""A file that a pipeline of a folder includes is a part of it, also when that pipeline has errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.cli.folders import find_pipelines
from millstream.spec.included_files import included_files

Run = Callable[..., subprocess.CompletedProcess[str]]
PART = "sources: {o: {type: memory, rows: [{id: 1}]}}\n"
SINKS = "sinks: {out: {type: print, from: o}}\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize(
    ("including", "code"),
    [
        (f"include: part.yaml\n{SINKS.replace('from: o', 'from: oo')}", "MS012"),
        (f"include: [part.yaml, nowhere.yaml]\n{SINKS}", "MS001"),
        ("include:\n  - part.yaml  # the orders\n\nsinks: {out: [\n", "MS002"),
        (f"include: [\n  part.yaml,\n]\n{SINKS}sources: [\n", "MS002"),
        (f"include: ${{NOT_SET:-part}}.yaml\n{SINKS}x: ${{NOT_SET}}\n", "MS006"),
    ],
    ids=["a node", "another include", "YAML after a list", "YAML after a flow list", "a variable"],
)
def test_a_part_of_a_pipeline_with_an_error_is_skipped(millstream: Run, tmp_path: Path, including: str, code: str) -> None:
    write(tmp_path / "p", a=including, part=PART)
    found = json.loads(millstream("check", "p", "--format", "json").stdout)
    assert [each["file"] for each in found["files"]] == ["p/a.yaml"]
    assert code in {error["code"] for error in found["errors"]}
    assert found["skipped"] == [{"file": "p/part.yaml", "reason": "included by another file"}]


def test_the_error_of_a_part_is_reported_at_its_place_once(millstream: Run, tmp_path: Path) -> None:
    write(tmp_path / "p", a=f"include: part.yaml\n{SINKS}", part=PART.replace("memory", "memry"))
    found = json.loads(millstream("check", "p", "--format", "json").stdout)
    assert [(error["code"], error["file"]) for error in found["errors"]] == [("MS010", "p/part.yaml")]


def test_parts_of_parts_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    write(tmp_path, a="include: sub/b.yaml\nsinks: {}\n")
    write(tmp_path / "sub", b="include: c.yaml\n", c=PART)
    assert included_files(tmp_path / "a.yaml") == {tmp_path / "sub/b.yaml", tmp_path / "sub/c.yaml"}
    assert find_pipelines([tmp_path]).files == (tmp_path / "a.yaml",)


def test_a_pipeline_that_only_includes_others_is_a_pipeline(millstream: Run, tmp_path: Path) -> None:
    write(tmp_path / "p", a="name: a\ninclude: [sources.yaml, sinks.yaml]\n", sources=PART, sinks=SINKS)
    write(tmp_path / "p", compose="include: other.yaml\nservices: {}\n")
    done = millstream("check", "p", "--format", "json")
    assert [(each["file"], each["is_valid"]) for each in json.loads(done.stdout)["files"]] == [("p/a.yaml", True)]


def test_files_that_include_each_other_are_reported(millstream: Run, tmp_path: Path) -> None:
    write(tmp_path / "p", a=f"include: b.yaml\n{SINKS}", b=f"include: a.yaml\n{PART}")
    found = json.loads(millstream("check", "p", "--format", "json").stdout)
    assert {each["file"] for each in found["files"]} == {"p/a.yaml", "p/b.yaml"}
    assert {error["code"] for error in found["errors"]} == {"MS171"}


def test_a_file_that_includes_itself_is_reported(millstream: Run, tmp_path: Path) -> None:
    write(tmp_path / "p", a=f"include: a.yaml\n{PART}{SINKS}")
    found = json.loads(millstream("check", "p", "--format", "json").stdout)
    assert [error["code"] for error in found["errors"]] == ["MS171"]


def test_a_folder_with_one_pipeline_and_its_part_is_one_pipeline(tmp_path: Path) -> None:
    write(tmp_path, a=f"include: part.yaml\n{SINKS}", part=PART)
    assert find_pipelines([tmp_path]).files == (tmp_path / "a.yaml",)
    assert find_pipelines([tmp_path / "part.yaml", tmp_path]).files == (tmp_path / "part.yaml", tmp_path / "a.yaml")
