"""`sum` and `avg` of a column that is no number are found without Spark."""

from __future__ import annotations

import pytest
from tests.sql.checked import check, marked

VALUES = ["v", "at", "g", "int(b)", "box.a", "arr[0]", "unix_date(d)", "CASE WHEN b THEN 1 END", "DISTINCT at"]
ACCEPTED = [f"SELECT g, sum({value}) AS s, avg({value}) AS a FROM t GROUP BY g" for value in VALUES]


@pytest.mark.parametrize("call", ["sum", "avg"])
@pytest.mark.parametrize("column", ["d", "b", "arr", "box", "t.b"])
def test_what_is_no_number_cannot_be_added_up(call: str, column: str) -> None:
    (finding,) = check(f"SELECT g, {call}({column}) AS s FROM t GROUP BY g")
    assert (finding.code, marked(finding)) == ("MS029", column)


def test_the_message_has_the_type_and_the_fix() -> None:
    (finding,) = check("SELECT g, sum(DISTINCT b) AS s FROM t GROUP BY g")
    assert finding.message == "transform `q`: `sum` needs numbers, but `b` is bool"
    assert finding.help == "cast it: `sum(int(b))`"


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_adds_up_is_not_accused(sql: str) -> None:
    """Spark casts text and timestamps to numbers."""
    assert check(sql) == []


def test_a_column_of_another_name_may_have_another_type() -> None:
    assert check("SELECT g, sum(b) AS s FROM (SELECT g, int(b) AS b FROM t) GROUP BY g") == []
