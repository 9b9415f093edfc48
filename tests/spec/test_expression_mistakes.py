"""A mistake in an expression is told at its word, and in words about SQL: what is missing, or what was expected."""

from __future__ import annotations

import pytest

from millstream.errors import Diagnostic
from millstream.spec.loader import loads

PIPELINE = """
sources:
  orders: {{type: memory, rows: [{{id: 1, amount: 5, user: a}}]}}
  other: {{type: memory, rows: [{{id: 1, amount: 5, user: a}}]}}
transforms:
  t:
{block}
sinks:
  out: {{type: print, from: {reader}}}
  rest: {{type: blackhole, from: other}}
"""
FILTER = "type: filter\nfrom: orders\nwhere: "
ROUTE = "type: route\nfrom: orders\nroutes:\n  odd: "


def found(block: str, **environ: str) -> Diagnostic:
    lines = "\n".join(f"    {line}" for line in block.splitlines())
    text = PIPELINE.format(block=lines, reader="t.odd" if "type: route" in block else "t")
    (finding,) = loads(text, environ=environ).errors
    return finding


def marked(finding: Diagnostic) -> str:
    assert finding.span is not None
    return finding.span.text[finding.span.column - 1 : finding.span.end - 1]


@pytest.mark.parametrize(
    "block",
    [
        FILTER + "amount >",
        ROUTE + "amount >",
        "type: select\nfrom: orders\ncolumns: {a: amount >}",
        "type: with_columns\nfrom: orders\ncolumns: {a: amount >}",
        "type: aggregate\nfrom: orders\naggregate: {a: sum(amount) >}",
        "type: window\nfrom: orders\nwindow: {type: tumbling, size: 1h}\naggregate: {a: sum(amount) >}",
        "type: join\nleft: orders\nright: other\nunbounded: true\non: left.id >",
    ],
    ids=lambda block: block.split()[1],
)
def test_every_option_with_an_expression_marks_the_word(block: str) -> None:
    finding = found(block)
    assert (finding.code, marked(finding)) == ("MS027", ">")
    assert finding.message.endswith("is not an expression: a value is missing after `>`")


@pytest.mark.parametrize(
    ("text", "word", "reason", "help_"),
    [
        ("amount > AND id < 3", ">", "a value is missing after `>`", ""),
        ("and amount > 3", "and", "a value is missing before `and`", ""),
        ("amount between 3", "3", "expected `AND` and a value", ""),
        ("not", "not", "something is missing after `not`: expected a value", ""),
        ("amount > 3 adn id < 4", "adn", "`adn` is not expected here", "did you mean `AND`?"),
        ("amount > 3, id < 4", ",", "expected an operator, such as `AND`, or the end", ""),
        ("amount > 3 && id < 4", "&&", "`&&` is not an operator of Spark SQL", "write `AND`"),
        ("(amount > 3", "(", "this `(` is not closed", "add the `)`"),
        ("amount > 3)", ")", "this `)` closes nothing", "remove it, or add the `(`"),
        ("user = 'x", "'", "a text begins with ' and does not end", "close it with '"),
        ("case when amount > 3 then 1", "1", "expected END after CASE", ""),
        ("cast(amount as)", ")", "expected TYPE after CAST", ""),
        ('""', '""', "it is empty", ""),
    ],
)
def test_what_is_wrong_is_told_without_the_parsers_words(text: str, word: str, reason: str, help_: str) -> None:
    finding = found(FILTER + text)
    assert (finding.code, marked(finding), finding.help) == ("MS027", word, help_)
    assert reason in finding.message
    assert "class" not in finding.render() and "sqlglot" not in finding.render()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("id > 1 AND amont > 4", "amont"),
        ("'id > 1 AND amont > 4'", "amont"),
        ('"id > 1 AND amont > 4"', "amont"),
        ("|\n  id > 1\n  AND amont > 4", "amont"),
        ("'user = ''x'' AND amont > 4'", "'user = ''x'' AND amont > 4'"),
        ("id > ${LEAST} AND amont > 4", "id > ${LEAST} AND amont > 4"),
    ],
    ids=["plain", "quoted", "double-quoted", "block", "escapes", "variable"],
)
def test_an_unknown_column_is_marked_where_columns_of_the_file_are_known(text: str, word: str) -> None:
    finding = found(FILTER + text, LEAST="100000")
    assert (finding.code, marked(finding), finding.help) == ("MS024", word, "did you mean `amount`?")


@pytest.mark.parametrize(
    ("block", "word"),
    [
        ("type: select\nfrom: orders\ncolumns: {a: id + amont * 2}", "amont"),
        ("type: with_columns\nfrom: orders\ncolumns: {a: id + amont * 2}", "amont"),
        ("type: aggregate\nfrom: orders\naggregate: {a: sum(amont)}", "amont"),
        ("type: join\nleft: orders\nright: other\nunbounded: true\non: left.id = right.idd", "idd"),
    ],
    ids=lambda text: text.split()[-1] if " " in text else text,
)
def test_other_options_mark_the_word_too(block: str, word: str) -> None:
    finding = next(each for each in [found(block)] if each.code == "MS024")
    assert marked(finding) == word


def test_a_list_of_columns_is_told_without_the_parsers_words() -> None:
    finding = found("type: select\nfrom: orders\ncolumns: [id, amount *]")
    assert finding.code == "MS027" and "class" not in finding.message and "expected a value" in finding.message


def test_a_route_marks_the_word_of_its_condition() -> None:
    finding = found(ROUTE + "id > 1 AND amont > 4")
    assert (finding.code, marked(finding)) == ("MS024", "amont")
    finding = found(ROUTE + "id > 1 AND lenght(user) > 4")
    assert (finding.code, marked(finding)) == ("MS159", "lenght")


def test_an_aggregate_in_a_condition_is_marked() -> None:
    finding = found(FILTER + "id > 1 AND sum(amount) > 4")
    assert (finding.code, marked(finding)) == ("MS030", "sum")
