"""Wrong programs are refused by both type checkers before anything runs, and the right one is not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
from millstream import BlackholeSink, StreamEnvironment, TumblingWindow, col, func

env = StreamEnvironment("p")
stream = env.from_rows([{"a": 1}])
"""
RIGHT = f"""{HEAD}
stream.filter(col("a") > 1).to(BlackholeSink()).execute()
stream.key_by("a").window(TumblingWindow.of("5m")).aggregate(n=func.count(1))
"""
WRONG = {
    "a window on an unkeyed stream": ('stream.window(TumblingWindow.of("5m"))', "window"),
    "an operator after a sink": ('stream.to(BlackholeSink()).filter(col("a") > 1)', "filter"),
    "execute without a sink": ("stream.execute()", "execute"),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("typed")
    texts = {"right": RIGHT} | {name: f"{HEAD}{line}\n" for name, (line, _) in WRONG.items()}
    paths = {name: folder / f"{name.replace(' ', '_')}.py" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name])
    return paths


@pytest.fixture(scope="module")
def mypy(programs: dict[str, Path]) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file=", *map(str, programs.values())]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def pyright(programs: dict[str, Path]) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, programs.values())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=programs["right"].parent)
    found: list[dict[str, object]] = json.loads(done.stdout)["generalDiagnostics"]
    return found


@pytest.mark.parametrize("name", WRONG)
def test_mypy_refuses(name: str, programs: dict[str, Path], mypy: str) -> None:
    said = [line for line in mypy.splitlines() if programs[name].name in line]
    assert any(f'has no attribute "{WRONG[name][1]}"' in line for line in said), mypy


@pytest.mark.parametrize("name", WRONG)
def test_pyright_refuses(name: str, programs: dict[str, Path], pyright: list[dict[str, object]]) -> None:
    said = [str(finding["message"]) for finding in pyright if str(finding["file"]).endswith(programs[name].name)]
    assert any(f'Cannot access attribute "{WRONG[name][1]}"' in message for message in said), pyright


def test_the_right_program_passes_both(programs: dict[str, Path], mypy: str, pyright: list[dict[str, object]]) -> None:
    name = programs["right"].name
    assert name not in mypy, mypy
    assert not [finding for finding in pyright if str(finding["file"]).endswith(name) and finding["severity"] == "error"]
