"""Every command on the README's first pages works as it is written, and its pipelines and programs are right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.spec.loader import loads

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def commands() -> list[str]:
    lines = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    return [line for line in lines if line.startswith("millstream ")]


def test_make_targets_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"\bmake (\w+)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)


def test_the_pipelines_shown_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scoring.py").write_text("def score(batch):\n    return batch\n")
    guide = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    shown = [block for text in (README, guide) for block in blocks("yaml", text) if "sources:" in block]
    assert len(shown) == 2
    assert [loads(block).errors for block in shown] == [(), ()]


def test_the_mistake_shown_looks_like_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scoring.py").write_text("def score(batch):\n    return batch\n")
    (error,) = loads(blocks("yaml")[0].replace("WHERE amount", "WHERE amout"), file="orders.yaml").errors
    assert all(line.strip() in README for line in error.render().splitlines())


def test_the_program_shown_builds_a_plan() -> None:
    (program,) = blocks("python")
    script = program.replace(".execute()", "") + "\nassert len(env.topology().nodes) == 4\nprint(env.topology().to_yaml())"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_links_lead_somewhere() -> None:
    for page in ("README.md", "docs/guide.md", "docs/exactly-once.md", "examples/README.md", "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
            assert "://" in link or (ROOT / page).parent.joinpath(link).exists(), f"{page}: {link}"


@pytest.mark.spark
def test_the_commands_shown_work_one_after_the_other(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert len(commands()) == 9
    for command in commands():
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr
