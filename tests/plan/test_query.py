"""What is known about SQL without Spark."""

import pytest

from millstream.plan import types
from millstream.sql.check.columns import analyse
from millstream.sql.check.query import parse_query, reads_clock

ORDERS = types.schema({"id": "int64", "user": "string", "amount": "decimal(18,2)", "tags": "list<string>", "p": "struct<a: int64>"})


def test_tables_are_found_behind_ctes_and_in_subqueries() -> None:
    query = parse_query("WITH c AS (SELECT * FROM raw.orders) SELECT * FROM c UNION ALL SELECT * FROM (SELECT * FROM b)")
    assert set(query.tables) == {"raw.orders", "b"}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM t",
        "SELECT a FROM t GROUP BY a",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t ORDER BY a",
        "SELECT a FROM t LIMIT 3",
        "SELECT a FROM t UNION SELECT a FROM u",
        "SELECT a FROM t JOIN u ON t.a = u.a",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "SELECT a FROM t EXCEPT ALL SELECT a FROM u",
    ],
)
def test_queries_that_need_state_are_recognised(text: str) -> None:
    assert parse_query(text).stateful()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE a > 1",
        "SELECT a FROM t UNION ALL SELECT b FROM u",
        "SELECT x FROM t LATERAL VIEW explode(tags) AS x",
        "SELECT explode(tags) FROM t",
        "WITH c AS (SELECT a FROM t) SELECT a + 1 FROM c",
        "SELECT array_max(tags), greatest(a, b) FROM t",
    ],
)
def test_queries_without_state_are_not(text: str) -> None:
    assert parse_query(text).stateful() is None


@pytest.mark.parametrize("text", ["now()", "a < current_date", "unix_timestamp()", "CURRENT_TIMESTAMP()"])
def test_expressions_that_read_the_clock_are_known(text: str) -> None:
    assert reads_clock(text)


@pytest.mark.parametrize("text", ["'now()'", "now", "unix_timestamp(a)", "to_date(a)"])
def test_other_expressions_do_not_read_it(text: str) -> None:
    assert not reads_clock(text)


def test_queries_that_roll_dice_say_so() -> None:
    assert not parse_query("SELECT rand() FROM t").deterministic
    assert not parse_query("SELECT uuid() AS id FROM t").deterministic
    assert parse_query("SELECT rand FROM t").deterministic


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("SELECT id, amout FROM raw.orders", ["amout"]),
        ("SELECT o.idd FROM raw.orders o WHERE amunt > 1", ["idd", "amunt"]),
        ("SELECT p.a, upper(user) u FROM raw.orders", []),
        ("SELECT x FROM raw.orders LATERAL VIEW explode(tags) AS x", []),
        ("SELECT transform(tags, t -> upper(t)) FROM raw.orders", []),
        ("SELECT id AS a, a + 1 AS b FROM raw.orders", []),
        ("SELECT z FROM (SELECT id AS z FROM raw.orders)", []),
    ],
)
def test_unknown_columns_are_found_and_known_ones_are_not_accused(text: str, unknown: list[str]) -> None:
    found = analyse(parse_query(text), {"raw.orders": ORDERS}).mistakes
    assert sorted(each.message for each in found) == sorted(f"unknown column `{name}`" for name in unknown)


def test_types_are_claimed_only_where_they_are_sure() -> None:
    output = analyse(
        parse_query("SELECT id, amount * 2 AS d, CAST(id AS int) AS i, user AS u FROM raw.orders"), {"raw.orders": ORDERS}
    ).output
    assert types.columns(output) == {"id": "int64", "d": "unknown", "i": "int32", "u": "string"}


def test_nothing_is_claimed_about_an_input_of_unknown_schema() -> None:
    assert analyse(parse_query("SELECT whatever FROM t"), {"t": None}).mistakes == ()
