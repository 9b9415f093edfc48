"""Values that an option cannot have: what it must be, in plain words, once, and beside every other mistake."""

from __future__ import annotations

import pytest

from millstream import Settings
from millstream.errors import Diagnostic, SpecError
from millstream.spec.loader import loads

PIPELINE = """
sources: {o: {type: memory, rows: [{id: 1, name: a}]}}
transforms: {t: {%s}}
sinks: {s: {type: print, from: t}}
settings: {%s}
"""


def findings(node: str = "type: filter, from: o, where: id > 0", settings: str = "") -> list[Diagnostic]:
    return list(loads(PIPELINE % (node, settings), environ={}).errors)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("state_partitions: 0", "must be at least 1, got `0`"),
        ("restart: {limit: -1}", "must be at least 0, got `-1`"),
        ("state_partitions: many", "must be a whole number, got `many`"),
    ],
)
def test_limits(settings: str, words: str) -> None:
    (found,) = findings(settings=settings)
    assert found.code == "MS008" and found.message.endswith(words)


def test_limits_in_python() -> None:
    with pytest.raises(SpecError, match="`state_partitions` of `Settings` must be at least 1"):
        Settings(state_partitions=0)


def test_a_route_without_branches() -> None:
    (found,) = findings("type: route, from: o, routes: {}")[:1]
    assert "`routes` in transform `t` must not be empty" in found.message


def test_every_route_is_checked() -> None:
    found = findings("type: route, from: o, routes: {small: idd < 3, text: name, many: count(*) > 1}")
    assert [each.code for each in found if each.node == "t"] == ["MS024", "MS008", "MS030"]


def test_a_variable_that_is_not_set_is_one_mistake() -> None:
    (found,) = findings(settings="state_partitions: '${NOPE}'")
    assert found.code == "MS011"


def test_one_of_two_similar_options_is_taken_for_the_misspelled_one_and_the_other_is_missing() -> None:
    text = """
        sources: {o: {type: memory, rows: [{id: 1}]}}
        sinks: {s: {type: postgres_aggregate, from: o, database: d, table: sums, group_by: [id], aggregate: {n: {fn: count}}}}
    """
    found = loads(text, environ={}).errors
    assert {(each.code, each.help) for each in found} >= {("MS006", "did you mean `agg_table`?")}
    assert any(each.code == "MS007" and "needs `landing_table`" in each.message for each in found)


def test_a_union_of_one() -> None:
    (found,) = findings("type: union, from: [o]")
    assert (found.code, found.help) == ("MS033", "add another node to `from`")
