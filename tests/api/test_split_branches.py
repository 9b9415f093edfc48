"""A split is a mapping of its branches; a wrong name is told with the nearest one."""

from __future__ import annotations

import pytest

from millstream import StreamEnvironment
from millstream.api.stream import Split
from millstream.errors import SpecError


@pytest.fixture
def split() -> Split:
    return StreamEnvironment("p").from_rows([{"id": 1, "amount": 5}], name="o").split(large="amount > 3", small="amount < 1", name="by")


def test_a_wrong_name_is_told_as_in_yaml(split: Split) -> None:
    with pytest.raises(SpecError) as refused:
        split["lagre"]
    (finding,) = refused.value.diagnostics
    assert (finding.code, finding.message) == ("MS012", "route `by` has no branch `lagre`")
    assert finding.help == "did you mean `large`?"
    assert finding.span is not None and 'split["lagre"]' in finding.span.text


def test_it_is_a_mapping(split: Split) -> None:
    assert list(split) == ["large", "small", "default"] and len(split) == 3
    assert "large" in split and "lagre" not in split
    assert split.get("lagre") is None and split["small"].name == "by.small"
    with pytest.raises(KeyError):
        split["lagre"]


def test_a_wrong_expression_is_told_in_words_about_sql(split: Split) -> None:
    with pytest.raises(SpecError) as refused:
        split["large"].select("id", "amount *")
    (finding,) = refused.value.diagnostics
    assert (finding.code, finding.message) == ("MS027", "`amount *` is not an expression: a value is missing after `*`")


@pytest.mark.parametrize("call", ["filter", "split", "join"])
def test_every_operator_tells_it_so(split: Split, call: str) -> None:
    stream = split["large"]
    calls = {"filter": lambda: stream.filter("a >"), "split": lambda: stream.split(b="a >"), "join": lambda: stream.join(stream, on="a >")}
    with pytest.raises(SpecError) as refused:
        calls[call]()
    (finding,) = refused.value.diagnostics
    assert finding.code == "MS027" and "expected a value" in finding.message and "class" not in finding.message
