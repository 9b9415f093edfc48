"""The reference pages say what the classes say, and every YAML example in them loads."""

import textwrap

import pytest
from tools.docs import stale
from tools.reference import named
from tools.regions import REGIONS

import millstream
from millstream.codes import CODES
from millstream.registry import Registry
from millstream.spec.docstrings import field_docs


def test_the_reference_pages_are_up_to_date() -> None:
    assert stale() == [], "run `make docs`"


def test_every_public_name_is_in_the_reference_or_has_a_page_of_its_own() -> None:
    components = {model.__name__ for _, _, model in Registry.installed().classes()}
    assert sorted(named()) == sorted(set(millstream.__all__) - components)


def test_every_sink_says_how_it_commits() -> None:
    assert [
        name for kind, name, model in Registry.installed().classes() if kind == "sink" and not getattr(model, "commit_method", "")
    ] == []


def test_a_table_that_differs_from_the_classes_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGIONS, "sinks", lambda: "| sink |")
    assert stale() == ["exactly-once.md"]


def test_every_option_of_every_component_has_a_text() -> None:
    missing = [
        f"{kind} {name}: {field}"
        for kind, name, model in Registry.installed().classes()
        for field in model.model_fields
        if not field_docs(model).get(field)
    ]
    assert missing == []


def test_every_component_has_a_summary_and_an_example_that_validates() -> None:
    from millstream.plan.document import COMMON
    from millstream.spec.tree import TreeReader, plain

    for _, name, model in Registry.installed().classes():
        assert model.summary, name
        tree = TreeReader("example", textwrap.dedent(model.example)).read()
        assert tree is not None
        block = plain(tree)
        options = next(iter(block.values())) if "type" not in block else block
        assert options["type"] == name
        model.model_validate({key: value for key, value in options.items() if key not in {*COMMON, "from"}})


def test_codes_in_the_source_are_explained() -> None:
    import re
    from pathlib import Path

    root = Path(millstream.__file__).parent
    used = {code for path in root.rglob("*.py") if path.parent.name != "codes" for code in re.findall(r'"(MS\d{3})"', path.read_text())}
    assert used <= set(CODES)
