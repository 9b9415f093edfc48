"""Expressions: SQL trees in Spark's dialect, built with Python's operators.

    (col("amount") > 100) & col("user").is_in("ann", "bob")      →      amount > 100 AND user IN ('ann', 'bob')

An expression prints as SQL, and plans store that text: it can be written to YAML, compared, and checked without a JVM.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import Dialect, ParseError, TokenError, exp, parse_one

from millstream.errors import OptionError

_CLASS = re.compile(r"Required keyword: '\w+' missing for")

Literal = bool | int | float | str | Decimal | date | datetime | None


class ExpressionError(OptionError):
    """A text that is not an expression."""

    code: ClassVar[str] = "MS027"


class Expr:
    """A value computed from a row's columns."""

    __slots__ = ("tree",)

    def __init__(self, tree: exp.Expr) -> None:
        self.tree = tree

    def alias(self, name: str) -> Expr:
        return Expr(exp.alias_(self.tree, exp.to_identifier(name, quoted=not name.isidentifier())))

    def cast(self, kind: str) -> Expr:
        """Convert to a type of Spark SQL: `int`, `decimal(18,2)`, `timestamp`."""
        return expr(f"CAST({self} AS {kind})")

    def is_null(self) -> Expr:
        return Expr(exp.Is(this=_operand(self.tree), expression=exp.Null()))

    def is_not_null(self) -> Expr:
        return ~self.is_null()

    def is_in(self, *values: Literal) -> Expr:
        return Expr(exp.In(this=_operand(self.tree), expressions=[lit(value).tree for value in values]))

    def like(self, pattern: str) -> Expr:
        return Expr(exp.Like(this=_operand(self.tree), expression=exp.Literal.string(pattern)))

    def __str__(self) -> str:
        return self.tree.sql(dialect="spark")

    def __repr__(self) -> str:
        return f"Expr({self})"

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value here; combine with & | ~ instead of and, or, not")

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]  # comparing builds SQL, as in every expression API
        return self._binary(exp.EQ, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]  # comparing builds SQL, as in every expression API
        return self._binary(exp.NEQ, other)

    def __gt__(self, other: Any) -> Expr:
        return self._binary(exp.GT, other)

    def __ge__(self, other: Any) -> Expr:
        return self._binary(exp.GTE, other)

    def __lt__(self, other: Any) -> Expr:
        return self._binary(exp.LT, other)

    def __le__(self, other: Any) -> Expr:
        return self._binary(exp.LTE, other)

    def __and__(self, other: Any) -> Expr:
        return self._binary(exp.And, other)

    def __or__(self, other: Any) -> Expr:
        return self._binary(exp.Or, other)

    def __invert__(self) -> Expr:
        return Expr(exp.Not(this=_operand(self.tree)))

    def __neg__(self) -> Expr:
        return Expr(exp.Neg(this=_operand(self.tree)))

    def __add__(self, other: Any) -> Expr:
        return self._binary(exp.Add, other)

    def __radd__(self, other: Any) -> Expr:
        return lit(other) + self

    def __sub__(self, other: Any) -> Expr:
        return self._binary(exp.Sub, other)

    def __rsub__(self, other: Any) -> Expr:
        return lit(other) - self

    def __mul__(self, other: Any) -> Expr:
        return self._binary(exp.Mul, other)

    def __rmul__(self, other: Any) -> Expr:
        return lit(other) * self

    def __truediv__(self, other: Any) -> Expr:
        return expr(f"{Expr(_operand(self.tree))} / {Expr(_operand(_tree(other)))}")

    def __mod__(self, other: Any) -> Expr:
        return self._binary(exp.Mod, other)

    def _binary(self, operator: type[exp.Binary], other: Any) -> Expr:
        return Expr(operator(this=_operand(self.tree), expression=_operand(_tree(other))))


def col(name: str) -> Expr:
    """A column of the input; a dot selects a field of a struct."""
    parts = [exp.to_identifier(part, quoted=not part.isidentifier()) for part in name.split(".")]
    return Expr(exp.column(*reversed(parts)) if len(parts) <= 2 else exp.Dot.build(parts))


def lit(value: Any) -> Expr:
    """A constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, datetime):
        return expr(f"TIMESTAMP '{value.isoformat()}'")
    if isinstance(value, date):
        return expr(f"DATE '{value.isoformat()}'")
    if isinstance(value, Decimal):
        return expr(f"CAST('{value}' AS DECIMAL(38, {max(0, -int(value.as_tuple().exponent))}))")
    return Expr(exp.convert(value))


def expr(text: str) -> Expr:
    """An expression written in Spark SQL; ExpressionError, a ValueError, when it does not parse."""
    try:
        return Expr(parse_one(text, dialect=_spark()))
    except (ParseError, TokenError) as error:
        raise ExpressionError(f"`{text}` is not an expression: {_reason(error)}") from None


class Functions:
    """Spark's functions by name: `func.upper(col("user"))`."""

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        def call(*arguments: Any) -> Expr:
            return expr(f"{name}({', '.join(str(lit(argument)) for argument in arguments)})")

        return call


func = Functions()


def quote_column(name: str) -> str:
    """The name of a column as Spark SQL reads it, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def columns_in(text: str) -> tuple[exp.Column, ...]:
    """The columns that an expression reads."""
    return tuple(expr(text).tree.find_all(exp.Column))


@lru_cache(maxsize=1)
def _spark() -> Dialect:
    return Dialect.get_or_raise("spark")


def _tree(value: Any) -> exp.Expr:
    return lit(value).tree


def _operand(tree: exp.Expr) -> exp.Expr:
    """Nested operators keep the grouping of the Python expression."""
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Binary | exp.Not | exp.In | exp.Is) else tree.copy()


def _reason(error: ParseError | TokenError) -> str:
    """The parser's message, without the names of its classes."""
    details = getattr(error, "errors", None)
    if not details:
        return "it is empty" if isinstance(error, ParseError) else "a text or a comment in it does not end"
    description, word = str(details[0]["description"]), details[0]["highlight"]
    if _CLASS.match(description):
        return f"something is missing at `{word}`: expected a value"
    if description.startswith("Invalid expression") or "<" in description:
        return f"`{word}` is not expected here"
    return f"expected {description.rstrip('.').removeprefix('Expecting ').removeprefix('Expected ')} at `{word}`"
