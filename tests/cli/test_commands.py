"""Commands: results on stdout, narration on stderr, exit codes that machines can use."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import Done

GOOD = """
sources: {a: {type: generator, rows: 3, fields: {id: {type: sequence}}}}
transforms: {b: {type: sql, sql: SELECT id FROM a WHERE id > 0}}
sinks: {c: {type: print, from: b}}
"""


def millstream(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "millstream.cli", *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD.replace("FROM a", "FROM aa"))
    return tmp_path


def test_check_says_yes(folder: Path) -> None:
    done = millstream(folder, "check", "good.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no errors" in done.stderr


def test_check_says_no_with_the_place(folder: Path) -> None:
    done = millstream(folder, "check", "bad.yaml")
    assert done.returncode == 78
    assert "error[MS012]: unknown input `aa`" in done.stderr
    assert "bad.yaml:3:" in done.stderr
    assert "did you mean `a`?" in done.stderr


def test_check_keeps_the_contract_of_validate(folder: Path) -> None:
    good, bad = (json.loads(millstream(folder, "check", name, "--format", "json").stdout) for name in ("good.yaml", "bad.yaml"))
    assert good.items() >= {"success": True, "is_valid": True, "errors": [], "warnings": []}.items()
    assert (bad["success"], bad["is_valid"]) == (True, False)
    assert bad["errors"][0]["code"] == "MS012"


def test_a_misspelt_command_and_option_are_usage(folder: Path) -> None:
    assert millstream(folder, "chekc", "good.yaml").returncode == 2
    assert millstream(folder, "check", "good.yaml", "--fromat", "json").returncode == 2


def test_a_missing_file_is_configuration(folder: Path) -> None:
    done = millstream(folder, "run", "nowhere.yaml")
    assert done.returncode == 78
    assert "MS001" in done.stderr
    assert "Traceback" not in done.stderr


def test_graph_draws_both_ways(folder: Path) -> None:
    assert millstream(folder, "graph", "good.yaml").stdout.startswith("flowchart LR")
    assert millstream(folder, "graph", "good.yaml", "--format", "tree").stdout == "a (generator)\n└─▶ b (sql)\n    └─▶ c (print)\n"


def test_explain_knows_codes(folder: Path) -> None:
    assert millstream(folder, "explain", "ms012").stdout.startswith("MS012: unknown input")
    assert millstream(folder, "explain", "MS999").returncode == 2


def test_init_writes_a_pipeline_that_passes_check(folder: Path) -> None:
    done = millstream(folder, "init", "shop")
    assert (done.returncode, done.stdout) == (0, "shop.yaml\n")
    assert (folder / "shop.yaml").read_text().startswith("# yaml-language-server: $schema=")
    assert millstream(folder, "check", "shop.yaml").returncode == 0
    assert millstream(folder, "init", "shop").returncode == 2


def test_the_schema_is_json_schema(folder: Path) -> None:
    schema = json.loads(millstream(folder, "schema").stdout)
    kinds = [member["properties"]["type"]["const"] for member in schema["properties"]["sources"]["additionalProperties"]["oneOf"]]
    assert kinds == ["file", "generator", "kafka", "memory", "postgres"]


@pytest.mark.spark
def test_run_prints_rows_on_stdout_and_the_summary_on_stderr(folder: Path) -> None:
    done = millstream(folder, "run", "good.yaml")
    assert sorted(json.loads(line)["id"] for line in done.stdout.splitlines()) == [1, 2]
    assert "✓ good done" in done.stderr
    assert "c  wrote 2 rows" in done.stderr


@pytest.mark.spark
def test_test_shows_a_difference(folder: Path, warm: Callable[..., Done]) -> None:
    (folder / "t.yaml").write_text(GOOD + "tests: [{name: odd, given: {a: [{id: 1}, {id: 7}]}, expect: {b: [{id: 1}, {id: 2}]}}]\n")
    done = warm("test", "t.yaml")
    assert done.returncode == 1
    assert '- {"id": 2}' in done.stdout
    assert '+ {"id": 7}' in done.stdout
    assert done.stdout.endswith("0 passed, 1 failed\n")


@pytest.mark.spark
def test_plan_maps_sparks_own_objections_to_the_line(folder: Path, warm: Callable[..., Done]) -> None:
    (folder / "p.yaml").write_text(GOOD.replace("SELECT id FROM a", "SELECT id + array(1) AS x FROM a"))
    done = warm("plan", "p.yaml")
    assert done.returncode == 78
    assert "MS066" in done.stderr
    assert "p.yaml:3:" in done.stderr
