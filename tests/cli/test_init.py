"""`millstream init --template`: every template passes the check and its own test; those without a server run unchanged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from millstream.cli.init import template_names
from millstream.spec.files import load_pipeline
from millstream.spec.json_schema import pipeline_schema
from millstream.spec.tree import TreeReader, plain

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_the_list_shows_every_template_with_a_sentence(millstream: Run, tmp_path: Path) -> None:
    lines = millstream("init", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["start", "kafka", "postgres-cdc", "windows"]
    assert all(len(line.split()) > 5 for line in lines)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("template", template_names())
def test_a_template_passes_the_check_and_the_schema_for_editors(millstream: Run, tmp_path: Path, template: str) -> None:
    assert millstream("init", "shop", "--template", template).stdout == "shop.yaml\n"
    assert json.loads(millstream("check", "shop.yaml", "--format", "json").stdout)["is_valid"]
    text = (tmp_path / "shop.yaml").read_text()
    tree = TreeReader("shop.yaml", text).read()
    assert tree is not None
    jsonschema.validate(plain(tree), pipeline_schema())
    assert load_pipeline(tmp_path / "shop.yaml").name == "shop"
    assert text.startswith("# yaml-language-server: $schema=./.millstream/schema.json")


def test_a_template_that_does_not_exist_is_refused_with_the_nearest(millstream: Run, tmp_path: Path) -> None:
    done = millstream("init", "shop", "--template", "kafak")
    assert done.returncode == 2
    assert "did you mean `kafka`?" in done.stderr
    assert not (tmp_path / "shop.yaml").exists()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("template", template_names())
def test_the_test_of_a_template_passes(millstream: Run, tmp_path: Path, template: str) -> None:
    from millstream.testing import run
    from millstream.testing.cases import run_case

    millstream("init", "shop", "--template", template)
    topology = load_pipeline(tmp_path / "shop.yaml")
    (case,) = topology.tests
    assert run_case(topology, case, run).differences == {}


@pytest.mark.spark
def test_templates_without_a_server_run_unchanged(millstream: Run, warm: Run, tmp_path: Path) -> None:
    for template in ("start", "windows"):
        millstream("init", template, "--template", template)
    done = warm("run", ".", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert {json.loads(line)["state"] for line in done.stdout.splitlines()} == {"done"}
    averages = [line for path in (tmp_path / "out" / "windows").glob("*.json") for line in path.read_text().splitlines()]
    assert sum(json.loads(line)["n"] for line in averages) == 600
