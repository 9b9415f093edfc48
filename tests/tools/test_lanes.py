"""Two lanes take every test once, each begins with its own, and files stay whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.lanes import in_order, take

FILES = {"a": False, "b": True, "c": False, "d": True}


@pytest.fixture
def tests() -> list[Any]:
    """Two tests in each file; in `b` and `d` one of them talks to a server."""
    return [
        SimpleNamespace(path=Path(name), get_closest_marker=lambda _, marked=marked and number == 1: marked, name=f"{name}{number}")
        for number in range(2)
        for name, marked in FILES.items()
    ]


def names(files: list[list[Any]]) -> list[str]:
    return [" ".join(test.name for test in file) for file in files]


def test_a_lane_begins_with_its_own_files_and_goes_on_with_the_last_of_the_other(tests: list[Any]) -> None:
    assert names(in_order(tests, "spark")) == ["a0 a1", "c0 c1", "d0 d1", "b0 b1"]
    assert names(in_order(tests, "servers")) == ["b0 b1", "d0 d1", "c0 c1", "a0 a1"]


def test_a_file_is_taken_once(tmp_path: Path) -> None:
    assert [take(tmp_path, file) for file in ("x/a.py", "x/b.py", "x/a.py")] == [True, True, False]


def test_each_test_runs_in_one_of_the_lanes(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text("def test_one(): ...\ndef test_two(): ...\n")
    (tmp_path / "taken").mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "tests.lanes", "-c", "/dev/null", "--rootdir", ".", "-v", "--taken", "taken", "--lane"]
    environ = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    lanes = [
        subprocess.Popen([*command, lane], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True) for lane in ("spark", "servers")
    ]
    said = "".join(lane.communicate(timeout=60)[0] for lane in lanes)
    assert sorted(line.split()[0] for line in said.splitlines() if line.split()[1:2] == ["PASSED"]) == [
        f"test_{name}.py::test_{number}" for name in "abc" for number in ("one", "two")
    ]


@pytest.mark.parametrize(("module", "marks"), [("tests.servers.kafka", ["server"]), ("tests.serverless", [])])
def test_whoever_asks_for_a_server_is_marked(module: str, marks: list[str]) -> None:
    from tests.conftest import pytest_collection_modifyitems

    fixture, found = SimpleNamespace(func=SimpleNamespace(__module__=module)), list[str]()
    item = SimpleNamespace(_fixtureinfo=SimpleNamespace(name2fixturedefs={"x": [fixture]}), add_marker=lambda mark: found.append(mark.name))
    pytest_collection_modifyitems([item])
    assert found == marks
