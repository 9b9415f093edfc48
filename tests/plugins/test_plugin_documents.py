"""A plan with plugins is stored in the checkpoint and read back: those of files, and classes that no file or package names."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plugins.shelf import Numbers, Plus, SqliteSink, Tally, Times

from millstream import Secret, StreamEnvironment, Udf, plugin
from millstream.plan.document import from_document, to_document
from millstream.plan.secret_references import secrets_of
from millstream.spec.files import load_pipeline

SHELF = Path(__file__).with_name("shelf.py")


def test_a_plan_with_plugins_of_a_file_is_read_back(tmp_path: Path) -> None:
    text = f"""
sources: {{n: {{type: shelf.numbers, folder: ., total: 3}}}}
functions: {{plus: {{type: shelf.plus, amount: 4}}}}
side_outputs: {{tally: {{type: shelf.tally, from: n}}}}
sinks: {{out: {{type: shelf.sqlite, from: n, path: x}}}}
settings: {{plugins: {SHELF}}}
"""
    (tmp_path / "p.yaml").write_text(text)
    topology = load_pipeline(tmp_path / "p.yaml")
    again = from_document(to_document(topology), tmp_path)
    assert [node.component for node in again.nodes] == [node.component for node in topology.nodes]
    assert to_document(again)["functions"] == {"plus": {"type": "shelf.plus", "amount": 4}}
    (tmp_path / "again.yaml").write_text(topology.to_yaml())
    assert to_document(load_pipeline(tmp_path / "again.yaml")) == to_document(topology)


def handed_over() -> StreamEnvironment:
    env = StreamEnvironment("p")
    env.side_output(Tally(), sources="shelf.numbers")
    env.from_source(Numbers(folder=".", total=3)).transform(Times(factor=9)).to(SqliteSink(path="x"))
    return env


def test_classes_that_a_program_hands_over_are_read_back() -> None:
    topology = handed_over().topology()
    known = {type(node.component) for node in topology.nodes}
    again = from_document(to_document(topology), known=known)
    assert [node.component for node in again.nodes] == [node.component for node in topology.nodes]


def test_without_them_they_are_not_known() -> None:
    """The control."""
    with pytest.raises(AttributeError):
        from_document(to_document(handed_over().topology()))


@plugin("test.with_secret")
class WithSecret(Udf):
    returns = "int64"
    token: Secret


def test_secrets_of_functions_are_secrets_of_the_plan() -> None:
    env = handed_over()
    env.function(WithSecret(token="hidden-word"), "f")
    env.function(Plus(), "plus")
    assert [secret.reveal() for secret in secrets_of(env.topology())] == ["hidden-word"]
