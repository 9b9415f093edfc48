"""A secret that comes back in somebody else's words is masked, and nothing that a run leaves behind holds it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
VALUE = "hunter2-correct-horse"
PIPELINE = """
sources: {rows: {type: memory, rows: [{id: 1}]}}
transforms: {step: {type: python, from: rows, function: leak.py:leak, schema: {id: int64}, on_error: POLICY}}
sinks: {out: {type: file, from: step, path: out, format: json}LETTERS}
settings: {spark: {spark.hadoop.fs.s3a.secret.key: "secret://env/TOKEN"}}
"""
CODE = f"""
def leak(batch):
    if batch.num_rows:
        raise ValueError("cannot log in with {VALUE}")
    return batch
"""


def run(folder: Path, policy: str = "fail", letters: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "p.yaml").write_text(PIPELINE.replace("POLICY", policy).replace("LETTERS", letters))
    (folder / "leak.py").write_text(CODE)
    command = [sys.executable, "-m", "millstream.cli", "run", "p.yaml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "TOKEN": VALUE})


def left_behind(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and path.name != "leak.py" and VALUE.encode() in path.read_bytes()]


def test_an_error_masks_it(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1
    assert "cannot log in with ***" in done.stderr
    assert VALUE not in done.stderr + done.stdout


def test_a_dead_letter_masks_it(tmp_path: Path) -> None:
    done = run(tmp_path, "{dead_letter: bad}", ", bad: {type: file, path: bad, format: json}")
    assert done.returncode == 0, done.stderr
    assert left_behind(tmp_path / "bad") == []
    assert "***" in "".join(path.read_text() for path in (tmp_path / "bad").rglob("*.json") if "_millstream" not in str(path))


def test_the_plan_shows_the_reference_and_not_the_value(tmp_path: Path) -> None:
    run(tmp_path)
    command = [sys.executable, "-m", "millstream.cli", "plan", "p.yaml", "--offline"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "TOKEN": VALUE})
    assert "spark.spark.hadoop.fs.s3a.secret.key = secret://env/TOKEN" in done.stdout
    assert VALUE not in done.stdout + done.stderr
