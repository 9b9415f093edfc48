"""Calls on dynamic tables in the text of a query, and what is wrong with them, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from millstream.errors import nearest
from millstream.plan.components import Problem, TextPlace
from millstream.sql.check.calls import closing_of, commas_of
from millstream.sql.check.query import tokens_of
from millstream.sql.check.table_joins import Tables, joins_in, word_of

CHECK, GET = "check", "get"
_FUNCTIONS = {"dynamic_table_check": CHECK, "dynamic_table_get": GET}


@dataclass(frozen=True, slots=True)
class TableCall:
    """One call: its verb, the table's name as written, and the tokens from the function's name to what closes it."""

    verb: str
    table: str | None
    """None: the first argument is no text."""
    first: int
    last: int
    arguments: int


def calls_in(text: str) -> list[TableCall]:
    tokens = tokens_of(text) if "dynamic_table_" in text.lower() else ()
    found = []
    for index, token in enumerate(tokens):
        verb = _FUNCTIONS.get(token.text.lower())
        if verb and token.token_type != TokenType.STRING and word_of(tokens, index + 1) == "(":
            last = closing_of(tokens, index + 1)
            named = tokens[index + 2] if tokens[index + 2].token_type == TokenType.STRING else None
            commas = commas_of(tokens, index + 1, last)
            alone = named is not None and bool(commas) and commas[0] == index + 3
            found.append(TableCall(verb, named.text if named and alone else None, index, last, len(commas) + 1))
    return found


def uses(text: str, tables: Tables) -> bool:
    return bool(calls_in(text)) or bool(tables and joins_in(text, tables))


def table_problems(text: str, tables: Tables) -> Iterator[Problem]:
    """What is wrong with the way in which a query uses dynamic tables."""
    tokens = tokens_of(text)
    for call in calls_in(text):
        name = tokens[call.first].text.lower()
        if call.table is None or call.arguments != 2:
            message = f"`{name}` takes the name of a dynamic table, in quotes, and a value"
            yield _placed(Problem("MS131", message, "sql", f"write `{name}('TABLE', column)`"), place_at(text, tokens[call.first]))
        elif call.table not in tables:
            place = place_at(text, tokens[call.first + 2])
            yield _placed(Problem("MS130", f"there is no dynamic table `{call.table}`", "sql", _near(call.table, tables)), place)
        elif call.verb == GET and not tables[call.table].columns.names:
            message = f"`{call.table}` has no columns to get"
            help_ = f"give it `columns`, or ask `dynamic_table_check('{call.table}', …)`"
            yield _placed(Problem("MS131", message, "sql", help_), place_at(text, tokens[call.first]))
    for join in joins_in(text, tables):
        if join.problem:
            yield _placed(Problem("MS133", join.problem, "sql", join.help), join.place)


def place_at(text: str, token: Token) -> TextPlace:
    before = text[: token.start]
    return TextPlace(token.start, token.end + 1, before.count("\n") + 1, token.start - (before.rfind("\n") + 1) + 1)


def _near(name: str, tables: Tables) -> str:
    return nearest(name, tables) or f"add `{name}: {{type: dynamic_table, …}}` under `transforms`"


def _placed(problem: Problem, place: TextPlace) -> Problem:
    width = place.end - place.start
    return Problem(problem.code, problem.message, problem.field, problem.help, problem.level, place.line, place.column, width)
