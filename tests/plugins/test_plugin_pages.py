"""The options of a plugin are on its page, in the JSON Schema for editors, and in messages, all from its class."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from millstream.cli import application
from millstream.registry import Registry
from millstream.spec.json_schema import pipeline_schema

SHELF = str(Path(__file__).with_name("shelf.py"))


def say(*words: str) -> str:
    done = CliRunner().invoke(application(words[0]), list(words))
    assert done.exit_code == 0, done.exception
    return done.stdout


def test_the_page_of_a_plugin() -> None:
    page = say("docs", "shelf.times", "--plugin", SHELF)
    assert page.startswith("# shelf.times (transform)\n\nAdds a multiple of `n`.\n")
    assert "| `factor` | whole number | `2` | By how much. |" in page
    assert "`on_error`" in page


def test_the_page_of_a_plugin_that_is_no_node_has_its_own_options_only() -> None:
    page = say("docs", "shelf.words", "--plugin", SHELF)
    assert "| `values` | map | **required** | Name → value. |" in page
    assert "`on_error`" not in page


def test_a_file_of_plugins_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text("sources: {n: {type: shelf.numbers, folder: .}}\nsinks: {out: {type: blackhole, from: n}}\n")
    for command in (["check", "p.yaml"], ["plan", "p.yaml", "--offline"], ["graph", "p.yaml"]):
        say(*command, "--plugin", SHELF)
    without = CliRunner().invoke(application("check"), ["check", "p.yaml"])
    assert (without.exit_code, "MS010" in without.stderr) == (78, True)


def test_a_type_that_nobody_has() -> None:
    done = CliRunner().invoke(application("docs"), ["docs", "kafak"])
    assert "did you mean `kafka`?" in str(done.exception)


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(pipeline_schema(Registry.installed().with_files([SHELF], Path.cwd())))


PIPELINE = {
    "sources": {"n": {"type": "shelf.numbers", "folder": ".", "total": 3}},
    "functions": {"plus": {"type": "shelf.plus", "amount": 3}},
    "side_outputs": {"tally": {"type": "shelf.tally", "from": ["n"]}},
    "sinks": {"out": {"type": "shelf.sqlite", "from": "n", "path": "x"}},
}


def test_the_schema_knows_plugins(validator: jsonschema.Draft7Validator) -> None:
    assert list(validator.iter_errors(PIPELINE)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"sources": {"n": {"type": "shelf.numbers", "folder": ".", "totl": 3}}},
        {"functions": {"plus": {"type": "shelf.plus", "amount": "many"}}},
        {"side_outputs": {"tally": {"type": "shelf.talley"}}},
        {"sinks": {"out": {"type": "shelf.sqlite", "from": "n"}}},
    ],
    ids=["unknown option", "wrong value", "unknown type", "missing option"],
)
def test_the_schema_refuses_wrong_options_of_plugins(wrong: dict, validator: jsonschema.Draft7Validator) -> None:
    assert list(validator.iter_errors(PIPELINE | wrong))


def test_the_command_prints_the_schema() -> None:
    printed = json.loads(say("schema", "--plugin", SHELF))
    assert "shelf.times transform" in json.dumps(printed)
