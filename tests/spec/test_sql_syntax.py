"""A syntax error in SQL is one error, at its place, in words about SQL."""

from __future__ import annotations

import pytest

from millstream.spec.loader import loads

PIPELINE = """
sources: {{orders: {{type: memory, rows: [{{id: 1, user: a, amount: 5}}]}}}}
transforms:
  t:
    type: sql{wiring}
    sql: |
      {sql}
sinks: {{out: {{type: print, from: t}}}}
"""


@pytest.mark.parametrize("wiring", ["", "\n    from: orders"])
@pytest.mark.parametrize(
    ("sql", "marked", "help_"),
    [
        ("SELEC id, user FROM orders", "SELEC", "did you mean `SELECT`?"),
        ("SELECT id FROM orders WHERE amount >", ">", ""),
        ("SELECT id FROM orders WHERE amount > 3 AND", "AND", ""),
        ("SELECT id FROM", "FROM", ""),
        ("SELECT id FORM orders", "FORM", "did you mean `FROM`?"),
        ("SELECT id FROM orders WHER amount > 3", "WHER", "did you mean `WHERE`?"),
        ("SELECT id, sum(amount) FROM orders GROUP id", "GROUP", "write `GROUP BY`"),
        ("SELECT id FROM orders WHERE (amount > 3", "(", "add the `)`"),
        ("SELECT id FROM orders WHERE amount > 3)", ")", "remove it, or add the `(`"),
        ("SELECT id FROM orders WHERE user = 'x", "'", "close it with '"),
        ("SELECT id,, user FROM orders", ",", "remove one"),
        ("DELETE FROM orders", "DELETE", "a query begins with `SELECT` or `WITH`"),
        ("SELECT id FROM orders; SELECT user FROM orders", "SELECT", "write one query per node"),
    ],
)
def test_a_syntax_error_has_a_place_and_a_way_out(sql: str, marked: str, help_: str, wiring: str) -> None:
    (found,) = loads(PIPELINE.format(sql=sql, wiring=wiring)).diagnostics
    assert (found.code, found.level) == ("MS158", "error")
    assert found.span
    assert found.span.text[found.span.column - 1 : found.span.end - 1] == marked
    assert found.help == help_
    assert "class" not in found.message


def test_what_only_spark_may_understand_is_a_warning_where_the_inputs_are_said() -> None:
    sql = "SELECT id user amount FROM orders"
    assert [(each.code, each.level) for each in loads(PIPELINE.format(sql=sql, wiring="\n    from: orders")).diagnostics] == [
        ("MS028", "warning")
    ]
    (found,) = loads(PIPELINE.format(sql=sql, wiring="")).diagnostics
    assert (found.code, found.level) == ("MS158", "error")
    assert "from: NODE" in found.help


def test_an_unknown_table_is_marked_in_the_query() -> None:
    (found,) = loads(PIPELINE.format(sql="SELECT id FROM ordrs", wiring="")).diagnostics
    assert found.code == "MS012"
    assert found.span
    assert found.span.text[found.span.column - 1 : found.span.end - 1] == "ordrs"
