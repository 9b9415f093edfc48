"""`millstream plugin new` writes projects whose tests pass; two of them, installed as wheels elsewhere, run together in one pipeline."""

from __future__ import annotations

import json
import os
import site
import sqlite3
import subprocess
import sys
import venv
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from millstream.cli import application
from millstream.registry import PLUGIN_KINDS


def new(kind: str, name: str, folder: Path) -> Path:
    done = CliRunner().invoke(application("plugin"), ["plugin", "new", kind, name, "--folder", str(folder / name.replace(".", "_"))])
    assert done.exit_code == 0, done.output
    return Path(done.stdout.strip())


def test_the_test_of_every_kind_passes(tmp_path: Path) -> None:
    projects = [new(kind, f"acme.a_{kind}", tmp_path) for kind in PLUGIN_KINDS]
    paths = os.pathsep.join(str(project / "src") for project in projects)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        *(str(each / "tests") for each in projects),
    ]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert f"{len(PLUGIN_KINDS)} passed" in done.stdout, done.stdout + done.stderr


def test_the_written_pipelines_pass_the_check(tmp_path: Path) -> None:
    """Each README shows a pipeline that uses the plugin."""
    from millstream.spec.loader import load

    for kind in ("source", "transform", "sink", "udf", "side_output"):
        project = new(kind, f"acme.a_{kind}", tmp_path)
        text = (project / "README.md").read_text().partition("```yaml\n")[2].partition("```")[0]
        path = project / "p.yaml"
        path.write_text(f"{text}settings: {{plugins: src/acme_a_{kind}/__init__.py}}\n")
        assert load(path, environ={}).errors == ()


@pytest.mark.parametrize(
    ("words", "code"),
    [(["sinc", "my_sink"], "MS008"), (["sink", "My-Sink"], "MS017"), (["sink", "a.b.c"], "MS017")],
    ids=["kind", "letters", "dots"],
)
def test_wrong_words_are_refused(words: list[str], code: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(application("plugin"), ["plugin", "new", *words, "--folder", str(tmp_path / "x")])
    assert code in str(done.exception)
    assert not (tmp_path / "x").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    new("sink", "mine", tmp_path)
    done = CliRunner().invoke(application("plugin"), ["plugin", "new", "sink", "mine", "--folder", str(tmp_path / "mine")])
    assert "MS001" in str(done.exception)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh virtual environment with two plugins, each built as a wheel; other packages are those of this one."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"import site; site.addsitedir({site.getsitepackages()[0]!r})\n")
    for kind, name in (("source", "first.numbers"), ("sink", "second.rows")):
        project = new(kind, name, folder)
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel"], cwd=project, capture_output=True, check=True)
        (wheel,) = (project / "dist").glob("*.whl")
        command = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(folder / "venv/bin/python"),
            "install",
            "-q",
            "--no-index",
            "--no-deps",
            str(wheel),
        ]
        subprocess.run(command, capture_output=True, check=True)
    return folder


def millstream(elsewhere: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(elsewhere / "venv/bin/python"), "-m", "millstream.cli", *words]
    return subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, timeout=300, check=False)


def test_installed_plugins_are_listed_with_where_they_come_from(elsewhere: Path) -> None:
    rows = [json.loads(line) for line in millstream(elsewhere, "plugin", "list").stdout.splitlines()]
    assert [(row["kind"], row["type"], row["from"], row["state"]) for row in rows] == [
        ("sink", "second.rows", "second_rows 0.1.0", "ok"),
        ("source", "first.numbers", "first_numbers 0.1.0", "ok"),
    ]


@pytest.mark.spark
def test_installed_plugins_run_together(elsewhere: Path) -> None:
    (elsewhere / "p.yaml").write_text(
        "sources:\n  n: {type: first.numbers, count: 5}\nsinks:\n  out: {type: second.rows, from: n, path: rows.db}\n"
    )
    done = millstream(elsewhere, "run", "p.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(elsewhere / "rows.db")) as database:
        assert sorted(row for (row,) in database.execute("SELECT row FROM rows")) == [f'{{"n": {n}}}' for n in range(5)]
