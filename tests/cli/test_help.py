"""Help has examples, shells complete, and the help lists `--debug`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from millstream.cli import COMMANDS, application
from millstream.cli.completion import pipeline_files
from millstream.cli.examples import EXAMPLES


def commands() -> list[str]:
    found = []
    for group in typer.main.get_group(application()).commands.items():
        name, command = group
        inner = getattr(command, "commands", None)
        found += [f"{name} {each}" for each in inner] if inner else [name]
    return found


def millstream(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'millstream'; from millstream.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environ})


def completed(folder: Path, words: str) -> list[str]:
    environ = {"_MILLSTREAM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    return millstream(folder, **environ).stdout.split()


def test_every_command_has_examples_of_itself_only() -> None:
    assert sorted(commands()) == sorted(EXAMPLES)
    assert all(line.startswith(f"millstream {command}") for command, lines in EXAMPLES.items() for line in lines)


@pytest.mark.parametrize("command", ["run", "checkpoint list"])
def test_help_shows_the_examples(tmp_path: Path, command: str) -> None:
    shown = " ".join(millstream(tmp_path, *command.split(), "--help", COLUMNS="200").stdout.split())
    assert f"Examples: {EXAMPLES[command][0]}" in shown


def test_help_shows_debug_and_completion(tmp_path: Path) -> None:
    shown = millstream(tmp_path, "--help").stdout
    assert all(option in shown for option in ("--debug", "--install-completion", "--show-completion", *COMMANDS))


def test_debug_can_be_anywhere(tmp_path: Path) -> None:
    for arguments in (("--debug", "check", "nope.yaml"), ("check", "nope.yaml", "--debug")):
        assert millstream(tmp_path, *arguments).returncode == 78


def test_shells_complete_files_codes_and_templates(tmp_path: Path) -> None:
    for name in ("orders.yaml", "clicks.yml", "notes.txt", "sub/x.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert completed(tmp_path, "millstream run ") == ["clicks.yml", "orders.yaml", "sub/"]
    assert completed(tmp_path, "millstream check sub/") == ["sub/x.yaml"]
    assert completed(tmp_path, "millstream explain MS00") == [f"MS00{number}" for number in range(1, 10)]
    assert completed(tmp_path, "millstream init --template k") == ["kafka"]


def test_paths_are_completed_from_where_they_start(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("")
    assert pipeline_files(f"{tmp_path}/") == [f"{tmp_path}/a.yaml"]
    assert pipeline_files(f"{tmp_path}/nope/x") == []
