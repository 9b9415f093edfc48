"""The `functions` section: short and long form, found without importing, refused where they cannot work."""

from pathlib import Path

import pytest

from millstream import Topology
from millstream.errors import Diagnostic
from millstream.plan.document import from_yaml
from millstream.spec.json_schema import pipeline_schema
from millstream.spec.loader import load

CODE = """
import millstream
raise SystemExit("a check must not run this")

@millstream.function(returns="int64")
def double(x): ...

@millstream.function(returns="float64", aggregate=True)
def median(x): ...

def plain(x): ...
"""
TEXT = """
functions:
  FUNCTIONS
sources:
  rows: {type: memory, rows: [{id: 1}]}
transforms:
  step: {type: sql, sql: SQL}
sinks:
  out: {type: print, from: step}
"""


def loaded(tmp_path: Path, functions: str, sql: str = "SELECT id FROM rows", more: str = "") -> tuple[Topology | None, list[Diagnostic]]:
    (tmp_path / "udfs.py").write_text(CODE)
    file = tmp_path / "p.yaml"
    file.write_text(TEXT.replace("FUNCTIONS", functions).replace("SQL", f'"{sql}"{more}'))
    found = load(file, environ={})
    return found.topology, list(found.errors)


@pytest.mark.parametrize("form", ["udfs:double", "{function: udfs:double}", "{function: udfs:plain, returns: 'list<string>'}"])
def test_both_forms_load_and_survive_the_way_to_yaml_and_back(tmp_path: Path, form: str) -> None:
    topology, errors = loaded(tmp_path, f"twice: {form}", "SELECT twice(id) AS id FROM rows")
    assert errors == []
    assert topology is not None
    again = from_yaml(topology.to_yaml(), tmp_path)
    assert again.functions == topology.functions
    assert again.to_yaml() == topology.to_yaml()


@pytest.mark.parametrize(
    ("functions", "code", "says"),
    [
        ("f: udfs:duoble", "MS016", "did you mean `double`?"),
        ("f: nowhere:double", "MS016", "no module `nowhere`"),
        ("f: udfs", "MS016", "module:function"),
        ("f: udfs:plain", "MS018", "does not say what type it returns"),
        ("f: {function: udfs:plain, returns: int46}", "MS015", "int64"),
        ("f: {function: udfs:plain, retruns: int64}", "MS006", "did you mean `returns`?"),
        ("f: {returns: int64}", "MS007", "needs `function`"),
        ("Upper: udfs:double", "MS019", "Spark's own"),
        ("top_k: udfs:double", "MS019", "Millstream's own"),
        ("_f: udfs:double", "MS017", "cannot be the name"),
        ("{f: udfs:double, F: udfs:double}", "MS020", "same name"),
        ("[1]", "MS008", "a map of named functions"),
    ],
)
def test_mistakes_are_found_without_importing(tmp_path: Path, functions: str, code: str, says: str) -> None:
    _, errors = loaded(tmp_path, functions)
    assert [error.code for error in errors] == [code]
    assert says in errors[0].render()
    assert errors[0].span is not None
    assert errors[0].span.line == 3


def test_an_undeclared_type_is_answered_with_both_ways_to_declare_it(tmp_path: Path) -> None:
    _, errors = loaded(tmp_path, "f: udfs:plain")
    assert '@millstream.function(returns="int64")' in errors[0].help
    assert "f: {function: udfs:plain, returns: int64}" in errors[0].help


@pytest.mark.parametrize(
    "sql", ["SELECT middle(id) AS id FROM rows", "SELECT id FROM rows WHERE middle(id) > 1", "SELECT Middle(id) AS id FROM rows"]
)
def test_an_aggregate_needs_a_group(tmp_path: Path, sql: str) -> None:
    _, errors = loaded(tmp_path, "middle: udfs:median", sql)
    assert [error.code for error in errors] == ["MS080"]
    _, errors = loaded(tmp_path, "middle: {function: udfs:median, aggregate: false}", sql)
    assert errors == []


def test_with_a_group_it_has_none_to_miss(tmp_path: Path) -> None:
    _, errors = loaded(tmp_path, "middle: udfs:median", "SELECT id, middle(id) AS m FROM rows GROUP BY id")
    assert "MS080" not in [error.code for error in errors]


def test_bad_rows_of_functions_cannot_be_isolated(tmp_path: Path) -> None:
    _, errors = loaded(tmp_path, "twice: udfs:double", "SELECT twice(id) AS id FROM rows", ", on_error: drop")
    assert [error.code for error in errors] == ["MS032"]
    assert loaded(tmp_path, "twice: udfs:double", "SELECT abs(id) AS id FROM rows", ", on_error: drop")[1] == []


def test_a_function_that_nobody_has_is_found_and_a_declared_one_is_suggested(tmp_path: Path) -> None:
    (error,) = loaded(tmp_path, "twice: udfs:double", "SELECT twise(id) AS id FROM rows")[1]
    assert (error.code, error.help) == ("MS159", "did you mean `twice`?")


def test_editors_know_the_section() -> None:
    section = pipeline_schema()["properties"]["functions"]["additionalProperties"]["anyOf"]
    assert section[0] == {"type": "string"}
    assert set(section[1]["properties"]) == {"function", "returns", "aggregate", "deterministic"}
    assert all("description" in field for field in section[1]["properties"].values())
