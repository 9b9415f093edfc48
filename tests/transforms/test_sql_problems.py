"""What is known of a query without Spark: its tables, its columns, what is wrong and where."""

from pathlib import Path

import pyarrow as pa
import pytest

from millstream.transforms.sql import Sql

ORDERS = pa.schema([("id", pa.int64()), ("user", pa.string()), ("amount", pa.decimal128(18, 2))])


def problems(sql: str, schema: pa.Schema | None = ORDERS) -> list[tuple[str, str, int, int, int]]:
    found = Sql(sql=sql).problems({"raw.orders": schema}, Path())
    return [(problem.code, problem.level, problem.line, problem.column, problem.width) for problem in found]


def test_an_unknown_column_is_marked_in_the_text() -> None:
    query = Sql(sql="SELECT id\nFROM raw.orders\nWHERE amout > 1")
    (problem,) = query.problems({"raw.orders": ORDERS}, Path())
    assert (problem.code, problem.line, problem.column, problem.width) == ("MS024", 3, 7, 5)
    assert problem.help == "did you mean `amount`?"


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT user, count(*) AS n FROM raw.orders GROUP BY user HAVING count(*) > 1", "HAVING"),
        ("SELECT DISTINCT user FROM raw.orders", "DISTINCT"),
        ("SELECT id FROM raw.orders ORDER BY id", "ORDER BY"),
    ],
)
def test_queries_that_need_state_come_later(query: str, word: str) -> None:
    (problem,) = Sql(sql=query).problems({"raw.orders": ORDERS}, Path())
    assert problem.code == "MS030"
    assert word in problem.message


def test_what_cannot_be_parsed_here_is_a_warning() -> None:
    ((code, level, *_),) = problems("SELECT id user amount FROM raw.orders")
    assert (code, level) == ("MS028", "warning")


def test_a_query_that_is_fine_has_no_problems() -> None:
    assert problems("SELECT id, upper(user) AS u FROM raw.orders WHERE amount > 1") == []
    assert problems("SELECT nonsense FROM raw.orders", schema=None) == []


def test_columns_and_types_come_out() -> None:
    output = Sql(sql="SELECT id, upper(user) AS u, amount FROM raw.orders").output({"raw.orders": ORDERS})
    assert output
    assert {field.name: str(field.type) for field in output} == {"id": "int64", "u": "string", "amount": "decimal128(18, 2)"}


def test_it_names_its_inputs_and_knows_whether_it_repeats_itself() -> None:
    assert Sql(sql="SELECT id FROM raw.orders UNION ALL SELECT id FROM b").tables() == ("raw.orders", "b")
    assert Sql(sql="SELECT id, now() AS t FROM a").deterministic
    assert not Sql(sql="SELECT id, rand() AS r FROM a").deterministic
