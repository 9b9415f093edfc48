"""`route` in a file: branches are nodes that can be read, and mistakes are told at their place."""

from __future__ import annotations

import pytest

from millstream.errors import Diagnostic
from millstream.plan.diagram import mermaid, tree
from millstream.plan.document import from_yaml, to_yaml
from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders: {type: memory, rows: [{id: 1, amount: 5}]}
transforms:
  by_size:
    type: route
    from: orders
    routes:
      large: amount >= 100
      small: amount < 10
sinks:
  big: {type: print, from: by_size.large}
  little: {type: print, from: by_size.small}
  rest: {type: print, from: by_size.default}
"""


def found(old: str, new: str) -> list[Diagnostic]:
    assert old in PIPELINE
    return list(loads(PIPELINE.replace(old, new)).diagnostics)


def test_each_branch_is_a_node_and_default_is_one_of_them() -> None:
    topology = loads(PIPELINE).require()
    assert not loads(PIPELINE).warnings
    assert [node.name for node in topology.consumers("by_size")] == ["by_size.large", "by_size.small", "by_size.default"]


def test_sql_can_read_a_branch() -> None:
    text = PIPELINE.replace("sinks:", "  q: {type: sql, sql: SELECT id FROM by_size.large}\nsinks:").replace(
        "from: by_size.large", "from: q"
    )
    assert not loads(text).diagnostics


def test_overlapping_conditions_are_allowed() -> None:
    assert not found("amount < 10", "amount >= 100")


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "words"),
    [
        ("by_size.large}", "by_size.larg}", "MS012", 12, "did you mean `by_size.large`"),
        ("from: by_size.large", "from: by_size", "MS012", 12, "`by_size.large`, `by_size.small`, `by_size.default`"),
        ("amount >= 100", "amont >= 100", "MS024", 9, "did you mean `amount`"),
        ("amount >= 100", "sum(amount) > 3", "MS030", 9, "needs more than one row"),
        ("amount >= 100", "amount >=", "MS027", 9, "large"),
        ("small: amount < 10", "default: amount < 10", "MS017", 10, "`default`"),
        ("large: amount >= 100", "la rge: amount >= 100", "MS017", 9, "la rge"),
        ("    routes:\n      large: amount >= 100\n      small: amount < 10\n", "", "MS007", 5, "routes"),
        ("\n      large: amount >= 100\n      small: amount < 10\n", " {}\n", "MS008", 8, "routes"),
    ],
)
def test_mistakes_are_told_at_their_place(old: str, new: str, code: str, line: int, words: str) -> None:
    findings = [finding for finding in found(old, new) if finding.level == "error"]
    match = [each for each in findings if each.code == code and each.span and each.span.line == line]
    assert match, findings
    assert words in match[0].render()


def test_one_mistake_in_a_condition_is_one_finding() -> None:
    assert [finding.code for finding in found("amount >= 100", "amount >=")] == ["MS027"]


def test_all_mistakes_are_told_at_once_and_no_warning_follows_from_them() -> None:
    text = (
        PIPELINE.replace("amount >= 100", "amont >= 100")
        .replace("small: amount", "default: amount")
        .replace("by_size.small", "by_size.smal")
    )
    assert sorted(finding.code for finding in loads(text).diagnostics) == ["MS012", "MS017", "MS024"]


def test_an_input_with_the_columns_of_a_route_is_refused() -> None:
    assert [finding.code for finding in found("rows: [{id: 1, amount: 5}]", "rows: [{id: 1, amount: 5, _route: a}]")] == ["MS017"]


def test_a_branch_that_nobody_reads_is_a_warning_that_says_that_rows_are_dropped() -> None:
    (finding,) = found("  rest: {type: print, from: by_size.default}\n", "")
    assert (finding.code, finding.level) == ("MS168", "warning")
    assert "rows that match no route are dropped" in finding.message


def test_a_route_without_readers_is_one_warning() -> None:
    text = PIPELINE[: PIPELINE.index("sinks:")] + "sinks: {out: {type: print, from: orders}}\n"
    assert [finding.code for finding in loads(text).diagnostics] == ["MS022"]


def test_a_node_with_the_name_of_a_branch_is_refused() -> None:
    assert "MS020" in [finding.code for finding in found("sinks:", "  by_size.large: {type: filter, from: orders, where: id > 1}\nsinks:")]


def test_a_branch_can_be_written_out_to_give_it_options() -> None:
    block = "  by_size.large: {type: branch, from: by_size, branch: large, description: big ones}\nsinks:"
    assert not found("sinks:", block)
    (finding,) = found("sinks:", "  x: {type: branch, from: by_size, branch: lage}\n  y: {type: filter, from: x, where: id > 1}\nsinks:")[
        :1
    ]
    assert "has no branch `lage`" in finding.message


def test_a_stored_plan_comes_back_the_same() -> None:
    topology = loads(PIPELINE).require()
    again = from_yaml(to_yaml(topology))
    assert again.nodes == topology.nodes
    assert loads(to_yaml(topology)).require().nodes == topology.nodes


def test_pictures_show_the_branches() -> None:
    topology = loads(PIPELINE).require()
    assert "by_size.large (branch)" in tree(topology)
    assert "n_by_size --> n_by_size_large" in mermaid(topology)


def test_an_expression_that_is_no_condition_is_refused_at_its_place() -> None:
    (finding,) = found("large: amount >= 100", "large: amount + 1")
    assert finding.code == "MS008" and "branch `large` needs a condition, and this is int64" in finding.message
    assert finding.span is not None and "amount + 1" in finding.span.text
