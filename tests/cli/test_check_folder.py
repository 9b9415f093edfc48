"""`millstream check FOLDER`: every pipeline in it is checked, independent of the others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
GOOD = "sources: {o: {type: memory, rows: [{id: 1}]}}\nsinks: {out: {type: print, from: o}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "a.yaml": GOOD,
        "sub/b.yml": GOOD.replace("from: o", "from: oo"),
        "sub/c.yaml": "include: part.yaml\nsinks: {out: {type: print, from: o}}\n",
        "sub/part.yaml": "sources: {o: {type: memory, rows: [{id: 1}]}}\n",
        "sub/broken.yaml": "sources: {o: [\n",
        "millstream.yaml": "settings: {profile: small}\n",
        "values.yaml": "replicas: 3\n",
        "list.yaml": "- 1\n",
        "template.yaml": "{{ if x }}: ]\n",
        ".millstream/x/plan.yaml": "sources: [\n",
    }
    for name, text in files.items():
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / name).write_text(text)
    return tmp_path / "p"


def test_all_pipelines_are_checked_and_reported_file_by_file(millstream: Run, folder: Path) -> None:
    done = millstream("check", "p")
    assert done.returncode == 78
    verdicts = [" ".join(line.split()) for line in done.stderr.splitlines() if line.startswith("  ✓") or line.startswith("  ✗")]
    assert verdicts == ["✓ p/a.yaml no errors", "✗ p/sub/b.yml 1 error", "✗ p/sub/broken.yaml 1 error", "✓ p/sub/c.yaml no errors"]
    assert done.stderr.splitlines()[-1] == "✗ 4 pipelines: 2 with errors, 5 files skipped"
    assert "did you mean `o`?" in done.stderr


def test_other_yaml_files_are_skipped_and_listed(millstream: Run, folder: Path) -> None:
    found = json.loads(millstream("check", "p", "--format", "json").stdout)
    assert {each["file"]: each["reason"] for each in found["skipped"]} == {
        "p/list.yaml": "not a pipeline",
        "p/millstream.yaml": "connections and settings",
        "p/sub/part.yaml": "included by another file",
        "p/template.yaml": "not YAML",
        "p/values.yaml": "not a pipeline",
    }


def test_json_has_the_findings_by_file(millstream: Run, folder: Path) -> None:
    done = millstream("check", "p", "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["success"], found["is_valid"], len(found["errors"])) == (True, False, 2)
    codes = {each["file"]: [error["code"] for error in each["errors"]] for each in found["files"]}
    assert codes == {"p/a.yaml": [], "p/sub/b.yml": ["MS012"], "p/sub/broken.yaml": ["MS002"], "p/sub/c.yaml": []}


def test_a_named_file_is_always_checked(millstream: Run, folder: Path) -> None:
    assert millstream("check", "p/values.yaml").returncode == 78
    assert millstream("check", "p/sub/part.yaml", "p/sub/c.yaml").returncode == 78


@pytest.mark.parametrize("text", ["", "replicas: 3\n"])
def test_a_folder_without_a_pipeline_is_an_error_with_a_fix(millstream: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "empty").mkdir()
    if text:
        (tmp_path / "empty" / "x.yaml").write_text(text)
    done = millstream("check", "empty")
    assert done.returncode == 78
    assert "error[MS172]: there is no pipeline in `empty`" in done.stderr
    assert "millstream init" in done.stderr
    assert json.loads(millstream("check", "empty", "--format", "json").stdout)["is_valid"] is False


def test_files_and_folders_can_be_mixed_and_count_once(millstream: Run, folder: Path) -> None:
    (folder / "sub" / "b.yml").unlink()
    (folder / "sub" / "broken.yaml").unlink()
    done = millstream("check", "p/a.yaml", "p")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "✓ 2 pipelines: no errors, 5 files skipped"
