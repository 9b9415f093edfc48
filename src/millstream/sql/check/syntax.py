"""Explains text that is not valid SQL: what is wrong, where, and whether that is certain.

The parser does not know all of Spark's SQL, so text that it does not understand may be valid. Certain errors are those of any SQL parser:
open quotes or parentheses, an end inside a condition, a first word that begins no query, and a misspelled keyword where the parser stops.
What is special to a single expression is in `expressions.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from sqlglot import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

_STARTS = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "("}
_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "LEFT", "INNER", "UNION", "LATERAL", "WITH", "WINDOW")
_BY = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "PARTITION"}
_AFTER_A_LIST = {
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.R_PAREN,
}
_QUOTES = {"'": "'", '"': '"', "`": "`"}
_COMPARISONS = {TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE, TokenType.LIKE, TokenType.RLIKE}
_BINARY = {*_COMPARISONS, TokenType.AND, TokenType.OR, TokenType.SLASH, TokenType.MOD}
"""Operators with a value on both sides, always."""
_OPERATORS = {*_BINARY, TokenType.PLUS, TokenType.DASH, TokenType.STAR}
_NESTED_TYPES = {"ARRAY", "MAP", "STRUCT"}
_ARGUMENT = re.compile(r"Required keyword: '(\w+)' missing for")
_ARGUMENTS = {"high": "`AND` and a value"}
"""Parts of an expression by the parser's names; any other is a value."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a query could not be parsed: a sentence, and the offsets of the place."""

    reason: str
    start: int = 0
    end: int = 0
    help: str = ""
    certain: bool = False


def fault_of(text: str, error: ParseError | TokenError, tokens: tuple[Token, ...]) -> Fault:
    """What is wrong with a query; certain causes first."""
    if not (detail := detail_of(error)):
        return open_quote(text)
    start, end = place_in(text, detail)
    return (
        _wrong_start(tokens)
        or unbalanced_brackets(tokens)
        or _misspelt_keyword(tokens, start)
        or lonely_operator(tokens)
        or parsers_fault(text, detail, start, end)
    )


def repeated_comma(tokens: tuple[Token, ...]) -> Fault | None:
    """The parser accepts `a,, b` and `SELECT a, FROM t`."""
    for before, token in pairwise(tokens):
        if before.token_type == token.token_type == TokenType.COMMA:
            return Fault("two commas follow each other", token.start, token.end + 1, "remove one", True)
        if before.token_type == TokenType.COMMA and token.token_type in _AFTER_A_LIST:
            return Fault(f"nothing is between this comma and `{token.text}`", before.start, before.end + 1, "remove the comma", True)
    return None


def no_query(tokens: tuple[Token, ...]) -> Fault:
    """SQL that is not one SELECT."""
    first = tokens[0] if tokens else None
    where = (first.start, first.end + 1) if first else (0, 0)
    return _wrong_start(tokens) or Fault("it is not one SELECT", *where, "write one query per node", True)


def _wrong_start(tokens: tuple[Token, ...]) -> Fault | None:
    if not tokens or tokens[0].text.upper() in _STARTS:
        return None
    word = tokens[0]
    help_ = did_you_mean(word.text) or "a query begins with `SELECT` or `WITH`"
    return Fault(f"a query cannot begin with `{word.text}`", word.start, word.end + 1, help_, True)


def open_quote(text: str) -> Fault:
    opened, at = "", 0
    for index, letter in enumerate(text):
        if not opened and letter in _QUOTES:
            opened, at = letter, index
        elif letter == opened and text[index - 1] != "\\":
            opened = ""
    if not opened:
        return Fault("a text or a comment in it does not end")
    return Fault(f"a text begins with {opened} and does not end", at, at + 1, f"close it with {opened}", True)


def unbalanced_brackets(tokens: tuple[Token, ...]) -> Fault | None:
    opened: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            opened.append(token)
        elif token.token_type == TokenType.R_PAREN and not opened:
            return Fault("this `)` closes nothing", token.start, token.end + 1, "remove it, or add the `(`", True)
        elif token.token_type == TokenType.R_PAREN:
            opened.pop()
    return Fault("this `(` is not closed", opened[-1].start, opened[-1].end + 1, "add the `)`", True) if opened else None


def _misspelt_keyword(tokens: tuple[Token, ...], start: int) -> Fault | None:
    """A misspelled keyword where the parser stops or just before: it was read as a name."""
    for token, following in tokens_around(tokens, start):
        if token.text.upper() in _BY and following != "BY":
            return Fault(f"`{token.text}` needs `BY`", token.start, token.end + 1, f"write `{token.text.upper()} BY`", True)
        if token.token_type == TokenType.VAR and (help_ := did_you_mean(token.text)):
            return Fault(f"`{token.text}` is not expected here", token.start, token.end + 1, help_, True)
    return None


def tokens_around(tokens: tuple[Token, ...], start: int) -> list[tuple[Token, str]]:
    """The tokens where the parser stops and just before, each with the word at the stop."""
    index = next((i for i, token in enumerate(tokens) if token.start >= start), len(tokens))
    following = tokens[index].text.upper() if index < len(tokens) else ""
    return [(token, following) for token in tokens[max(0, index - 1) : index + 1]]


def lonely_operator(tokens: tuple[Token, ...]) -> Fault | None:
    """An operator without a value before or after it."""
    if any(token.text.upper() in _NESTED_TYPES for token in tokens):  # `<` and `>` may be brackets
        return None
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        ends = after is None
        if token.token_type in _BINARY and (before is None or before.token_type == TokenType.L_PAREN):
            return Fault(f"a value is missing before `{token.text}`", token.start, token.end + 1)
        if token.token_type in (_OPERATORS if ends else _BINARY) and (after is None or after.token_type in {*_BINARY, TokenType.R_PAREN}):
            return Fault(f"a value is missing after `{token.text}`", token.start, token.end + 1, "", ends)
    return None


def parsers_fault(text: str, detail: dict[str, Any], start: int, end: int) -> Fault:
    """The parser's message, without the names of its classes."""
    word, ends = detail["highlight"], not text[end:].strip(" \n\t;")
    if argument := _ARGUMENT.match(detail["description"]):
        side = "after" if ends else "before"
        return Fault(f"something is missing {side} `{word}`: expected {_ARGUMENTS.get(argument[1], 'a value')}", start, end, "", ends)
    if ends and "but got" in detail["description"]:
        return Fault(f"something is missing after `{word}`", start, end, "", ends)
    if detail["description"].startswith(("Expecting", "Expected")) and "<" not in detail["description"]:
        said = detail["description"].removeprefix("Expecting ").removeprefix("Expected ")
        where = f"the text ends after `{word}`" if ends else f"`{word}` is followed by an unexpected word"
        return Fault(f"{where}: expected {said}", start, end)
    return Fault(f"`{word}` is not expected here", start, end)


def did_you_mean(word: str, keywords: tuple[str, ...] = _KEYWORDS) -> str:
    close = get_close_matches(word.upper(), keywords, n=1, cutoff=0.75)
    return f"did you mean `{close[0]}`?" if close and not word.upper().startswith(close[0]) else ""


def detail_of(error: ParseError | TokenError) -> dict[str, Any] | None:
    """The first error of the parser; None when the text has no tokens, or a text in it does not end."""
    return next(iter(getattr(error, "errors", [])), None)


def place_in(text: str, detail: dict[str, Any]) -> tuple[int, int]:
    end = _offset(text, detail["line"], detail["col"])
    return max(0, end - len(detail["highlight"])), end


def _offset(text: str, line: int, column: int) -> int:
    before = text.split("\n")[: line - 1]
    return sum(len(each) + 1 for each in before) + column
