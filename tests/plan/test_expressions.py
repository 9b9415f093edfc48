"""Python's operators build Spark's SQL."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from millstream import col, expr, func, lit


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("a") > 3, "a > 3"),
        ((col("a") > 3) & (col("b") == "x"), "(a > 3) AND (b = 'x')"),
        (~col("a").is_null(), "NOT (a IS NULL)"),
        (col("a").is_in(1, 2), "a IN (1, 2)"),
        (2 * col("a") - 1, "(2 * a) - 1"),
        (col("a") * (col("b") + 1), "a * (b + 1)"),
        (col("x y"), "`x y`"),
        (col("p.a"), "p.a"),
        (func.upper(col("u")), "UPPER(u)"),
        (col("a").alias("b"), "a AS b"),
        (lit(date(2026, 1, 2)), "CAST('2026-01-02' AS DATE)"),
        (lit("it's"), "'it\\'s'"),
    ],
)
def test_operators_print_as_sql(expression: object, text: str) -> None:
    assert str(expression) == text


@pytest.mark.parametrize("value", [1, 1.5, "a", True, None, Decimal("1.20"), datetime(2026, 1, 1, tzinfo=UTC)])
def test_constants_of_every_kind_parse_again(value: object) -> None:
    assert str(expr(str(lit(value)))) == str(lit(value))


def test_and_instead_of_ampersand_is_caught() -> None:
    with pytest.raises(TypeError, match="&"):
        bool(col("a") > 1 and col("b") > 1)


def test_text_that_is_no_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="not an expression"):
        expr("a >")
