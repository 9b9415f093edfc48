"""What the README shows beside its blocks of code, which `tests/docs` tries: make targets, a message, links."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import pages

from millstream.spec.loader import loads

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def test_make_targets_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"\bmake (\w+)", README + (ROOT / "CONTRIBUTING.md").read_text()))
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)


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
    for page in (*pages(), "examples/README.md"):
        for link in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
            assert "://" in link or (ROOT / page).parent.joinpath(link).exists(), f"{page}: {link}"
