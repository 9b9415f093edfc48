"""Checks single expressions, which are options of components: their syntax, their columns, and whether one row is enough for them.

Places are in the expression's own text, so that a message can mark the word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from sqlglot import ParseError, TokenError, parse_one
from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.components import Problem, TextPlace
from millstream.sql.check import syntax
from millstream.sql.check.columns import analyse
from millstream.sql.check.query import parse_query, place_between, tokens_of
from millstream.sql.check.syntax import Fault

_INPUT = "input"
_BEFORE = "SELECT "
_KEYWORDS = ("AND", "OR", "NOT", "BETWEEN", "LIKE", "RLIKE", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST")
_FOREIGN_OPERATORS = {"&&": "AND", "=>": ">="}


def expression_fault(text: str) -> Fault | None:
    """Why a text is not an expression; None when it is one."""
    try:
        parse_one(text, dialect="spark")
    except (ParseError, TokenError) as error:
        return _fault_of(text, error)
    return None


def row_problems(texts: Iterable[tuple[str, str]], schema: pa.Schema | None) -> list[Problem]:
    """Problems of expressions over single rows: unknown columns, and constructs that need more than one row. Each text comes with its
    field.
    """
    pairs = list(texts)
    return [problem for field, text in pairs for problem in _several_rows(field, text)] or unknown_columns(pairs, schema)


def unknown_columns(texts: Iterable[tuple[str, str]], schema: pa.Schema | None) -> list[Problem]:
    """Columns that expressions read and the input does not have."""
    if schema is None:
        return []
    found = []
    for field, text in texts:
        wrong = analyse(parse_query(_as_query(text)), {_INPUT: schema}).mistakes
        found += [_at(Problem(each.code, each.message, field, each.help), text, each.place) for each in wrong if each.code == "MS024"]
    return found


def _several_rows(field: str, text: str) -> Iterator[Problem]:
    query = parse_query(_as_query(text))
    if query.tree is not None and (needs := query.stateful()):
        help_ = "use `type: aggregate` or `type: window`, or a query with GROUP BY"
        yield _at(Problem("MS030", f"{needs[0]} needs more than one row", field, help_), text, needs[1])


def _as_query(text: str) -> str:
    return f"{_BEFORE}{text} AS value FROM {_INPUT}"


def _at(problem: Problem, text: str, place: TextPlace | None) -> Problem:
    """The problem at a place of the query, as a place of the expression."""
    if place is None or not 0 <= place.start - len(_BEFORE) < len(text):
        return problem
    own = place_between(text, place.start - len(_BEFORE), place.end - len(_BEFORE))
    return Problem(problem.code, problem.message, problem.field, problem.help, problem.level, own.line, own.column, own.end - own.start)


def _fault_of(text: str, error: ParseError | TokenError) -> Fault:
    detail, tokens = syntax.detail_of(error), tokens_of(text)
    if detail is None:
        return Fault("it is empty") if isinstance(error, ParseError) else syntax.open_quote(text)
    start, end = syntax.place_in(text, detail)
    return (
        syntax.unbalanced_brackets(tokens)
        or _misspelt_keyword(tokens, start)
        or syntax.lonely_operator(tokens)
        or _unexpected_word(detail, start, end)
        or syntax.parsers_fault(text, detail, start, end)
    )


def _misspelt_keyword(tokens: tuple[Token, ...], start: int) -> Fault | None:
    """A misspelled keyword where the parser stops or just before; in short words two letters may be swapped."""
    for token, _ in syntax.tokens_around(tokens, start):
        swapped = [word for word in _KEYWORDS if sorted(word) == sorted(token.text.upper())]
        help_ = f"did you mean `{swapped[0]}`?" if swapped else syntax.did_you_mean(token.text, _KEYWORDS)
        if token.token_type == TokenType.VAR and help_:
            return Fault(f"`{token.text}` is not expected here", token.start, token.end + 1, help_, True)
    return None


def _unexpected_word(detail: dict[str, Any], start: int, end: int) -> Fault | None:
    """A word after an expression that is complete."""
    word = detail["highlight"]
    if not detail["description"].startswith("Invalid expression"):
        return None
    if word in _FOREIGN_OPERATORS:
        return Fault(f"`{word}` is not an operator of Spark SQL", start, end, f"write `{_FOREIGN_OPERATORS[word]}`", True)
    return Fault(f"`{word}` is not expected here: expected an operator, such as `AND`, or the end", start, end)
