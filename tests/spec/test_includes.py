"""`include`, anchors and `x-` keys: parts of a pipeline written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from millstream.errors import Diagnostic
from millstream.spec.json_schema import pipeline_schema
from millstream.spec.loader import Loaded, load, loads

MAIN = """
include: [shared/sources.yaml]
transforms: {large: {type: filter, from: orders, where: amount > 1}}
sinks: {out: {type: print, from: large}}
"""
SOURCES = """
x-note: shared by all pipelines
sources:
  orders: {type: memory, rows: [{id: 1, amount: 5}]}
"""
Write = Callable[..., Loaded]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def go(main: str = MAIN, **files: str) -> Loaded:
        folder = tmp_path / "p"
        (folder / "shared").mkdir(parents=True, exist_ok=True)
        for name, text in {"sources": SOURCES, **files}.items():
            (folder / "shared" / f"{name}.yaml").write_text(text)
        (folder / "main.yaml").write_text(main)
        return load(folder / "main.yaml", environ={"LEAST": "3"})

    return go


def only(loaded: Loaded) -> Diagnostic:
    (finding,) = loaded.errors
    return finding


def test_nodes_of_an_included_file_belong_to_the_pipeline(write: Write) -> None:
    assert [node.name for node in write().require().nodes] == ["orders", "large", "out"]


def test_one_file_can_be_named_without_a_list(write: Write) -> None:
    assert not write(MAIN.replace("[shared/sources.yaml]", "shared/sources.yaml")).diagnostics


def test_functions_and_connections_are_included_and_variables_filled_in(write: Write) -> None:
    more = "\nfunctions: {f: 'udfs:f'}\nconnections: {kafka: {bootstrap_servers: 'localhost:${LEAST}'}}\n"
    topology = write(sources=SOURCES + more).topology
    assert topology is not None
    assert [used.name for used in topology.functions] == ["f"]
    assert topology.connections[0].options == {"bootstrap_servers": "localhost:3"}
    assert topology.connections[0].origins == {"bootstrap_servers": "sources.yaml"}


def test_a_mistake_is_told_at_its_place_in_the_included_file(write: Write, tmp_path: Path) -> None:
    finding = only(write(sources=SOURCES.replace("rows:", "rowz:")))
    assert finding.span and (finding.span.file, finding.span.line) == (str(tmp_path / "p" / "shared" / "sources.yaml"), 4)


def test_a_file_that_two_others_include_counts_once(write: Write) -> None:
    both = dict.fromkeys(("a", "b"), "include: sources.yaml\n")
    assert not write(MAIN.replace("shared/sources.yaml", "shared/a.yaml, shared/b.yaml"), **both).diagnostics


def test_a_name_in_two_files_is_an_error_that_names_both_places(write: Write) -> None:
    finding = only(write(MAIN + "sources: {orders: {type: memory, rows: [{id: 1, amount: 5}]}}\n"))
    assert finding.code == "MS020"
    assert "shared/sources.yaml:4" in finding.render()
    assert "main.yaml:5" in finding.render()


def test_a_source_and_a_sink_of_one_name_in_two_files_are_told_with_the_file(write: Write) -> None:
    finding = next(each for each in write(MAIN.replace("{out:", "{orders:")).errors if each.code == "MS020")
    assert "shared/sources.yaml:4" in finding.message


@pytest.mark.parametrize(
    ("main", "files", "code", "words"),
    [
        (MAIN, {"sources": SOURCES + "include: sources.yaml\n"}, "MS171", "sources.yaml` → `"),
        (MAIN, {"sources": SOURCES + "include: ../main.yaml\n"}, "MS171", "main.yaml` → `"),
        (MAIN, {"sources": SOURCES + "include: a.yaml\n", "a": "include: b.yaml", "b": "include: a.yaml"}, "MS171", "a.yaml` → `"),
        (MAIN.replace("sources.yaml", "sorces.yaml"), {}, "MS001", "did you mean `sources.yaml`"),
        (MAIN.replace("shared/sources.yaml", "../sources.yaml"), {}, "MS169", "outside"),
        (MAIN.replace("shared/sources.yaml", "{a: b}"), {}, "MS008", "`include` must be a list of files"),
        (MAIN, {"sources": "\n"}, "MS170", "is empty"),
        (MAIN, {"sources": "- 1\n"}, "MS005", "is not a map"),
        (MAIN, {"sources": SOURCES + "settings: {master: local}\n"}, "MS006", "an included file cannot have `settings`"),
        (MAIN, {"sources": SOURCES + "setings: {master: local}\n"}, "MS006", "did you mean `settings`?"),
        (MAIN, {"sources": SOURCES + "a: [\n"}, "MS002", "sources.yaml"),
    ],
)
def test_an_include_that_cannot_be_used_is_told(write: Write, main: str, files: dict[str, str], code: str, words: str) -> None:
    found = [finding.render() for finding in write(main, **files).errors if finding.code == code]
    assert found and words in found[0], write(main, **files).errors


@pytest.mark.parametrize("key", ["name: x", "description: x", "settings: {master: local}", "tests: []"])
def test_what_belongs_to_the_pipeline_is_sent_to_its_file(write: Write, tmp_path: Path, key: str) -> None:
    finding = only(write(sources=f"{SOURCES}{key}\n"))
    assert (finding.code, finding.span and finding.span.line) == ("MS006", 5)
    assert f"move it to `{tmp_path / 'p' / 'main.yaml'}`" in finding.help
    assert "can have `sources`, `transforms`, `sinks`, `functions`, `side_outputs`, `connections` and `include`" in finding.help


def test_a_file_that_cannot_be_included_is_the_only_finding(write: Write) -> None:
    only(write(MAIN.replace("sources.yaml", "sorces.yaml")))


def test_an_included_symlink_that_leads_outside_is_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "p" / "shared").mkdir(parents=True)
    (tmp_path / "elsewhere.yaml").write_text(SOURCES)
    (tmp_path / "p" / "shared" / "link.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert "MS169" in [finding.code for finding in write(MAIN.replace("sources.yaml", "link.yaml")).errors]


def test_sql_files_of_an_included_file_count_from_there(write: Write, tmp_path: Path) -> None:
    (tmp_path / "p" / "shared").mkdir(parents=True)
    (tmp_path / "p" / "shared" / "q.sql").write_text("SELECT id, amount FROM orders")
    more = "transforms: {q: {type: sql, sql_file: q.sql}}\n"
    assert not write(MAIN.replace("from: orders", "from: q"), sources=SOURCES + more).diagnostics


def test_editors_know_it() -> None:
    assert jsonschema.Draft7Validator(pipeline_schema()).is_valid(yaml.safe_load(MAIN))


def test_anchors_merges_and_x_keys_write_a_part_once() -> None:
    text = """
x-defaults: &print {type: print, sample_every: 10}
sources: {orders: {type: memory, rows: [{id: 1}]}}
sinks:
  one: {<<: *print, from: orders}
  two: {<<: *print, from: orders, sample_every: 5}
"""
    topology = loads(text).require()
    assert [sink.component.sample_every for sink in topology.sinks] == [10, 5]


def test_other_unknown_keys_are_refused() -> None:
    text = "defaults: {}\nsources: {orders: {type: memory, rows: [{id: 1}]}}\nsinks: {out: {type: print, from: orders}}"
    assert [finding.code for finding in loads(text).errors] == ["MS006"]
