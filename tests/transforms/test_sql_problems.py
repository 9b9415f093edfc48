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
    ("query", "kind"),
    [
        ("SELECT id FROM raw.orders WHERE amount > 1", "stateless"),
        ("SELECT user, count(*) AS n FROM raw.orders GROUP BY user", "running"),
        ("SELECT user, count(*) AS n FROM raw.orders GROUP BY user HAVING count(*) > 1", "incremental"),
        ("SELECT DISTINCT user FROM raw.orders", "incremental"),
        ("SELECT id FROM raw.orders ORDER BY id LIMIT 3", "incremental"),
        ("SELECT id FROM raw.orders WHERE id IN (SELECT id FROM raw.orders)", "incremental"),
        ("SELECT id FROM raw.orders TABLESAMPLE (10 PERCENT)", "refused"),
    ],
)
def test_how_a_query_runs_is_known_without_spark(query: str, kind: str) -> None:
    sql = Sql(sql=query)
    assert sql.kind == kind
    assert [problem.code for problem in sql.problems({"raw.orders": ORDERS}, Path())] == (["MS030"] if kind == "refused" else [])


def test_over_a_changelog_an_aggregate_is_kept_up_to_date() -> None:
    totals = Sql(sql="SELECT user, count(*) AS n FROM raw.orders GROUP BY user").over(changes=True, state=False)
    assert totals.kind == "incremental"
    assert Sql(sql="SELECT id FROM raw.orders WHERE amount > 1").over(changes=True, state=False).kind == "stateless"


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
