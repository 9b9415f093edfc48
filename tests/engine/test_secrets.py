"""A secret that comes back in somebody else's words is masked, and nothing that a run leaves behind holds it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

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


@pytest.fixture
def run(tmp_path: Path, warm: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    monkeypatch.setenv("TOKEN", VALUE)

    def go(policy: str = "fail", letters: str = "") -> Done:
        (tmp_path / "p.yaml").write_text(PIPELINE.replace("POLICY", policy).replace("LETTERS", letters))
        (tmp_path / "leak.py").write_text(CODE)
        return warm("run", "p.yaml")

    return go


def left_behind(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.is_file() and path.name != "leak.py" and VALUE.encode() in path.read_bytes()]


def test_an_error_masks_it(run: Callable[..., Done]) -> None:
    done = run()
    assert done.returncode == 1
    assert "cannot log in with ***" in done.stderr
    assert VALUE not in done.stderr + done.stdout


def test_a_dead_letter_masks_it(run: Callable[..., Done], tmp_path: Path) -> None:
    done = run("{dead_letter: bad}", ", bad: {type: file, path: bad, format: json}")
    assert done.returncode == 0, done.stderr
    assert left_behind(tmp_path / "bad") == []
    assert "***" in "".join(path.read_text() for path in (tmp_path / "bad").rglob("*.json") if "_millstream" not in str(path))


def test_the_plan_shows_the_reference_and_not_the_value(run: Callable[..., Done], warm: Callable[..., Done]) -> None:
    run()
    done = warm("plan", "p.yaml", "--offline")
    assert "spark.spark.hadoop.fs.s3a.secret.key = secret://env/TOKEN" in done.stdout
    assert VALUE not in done.stdout + done.stderr
