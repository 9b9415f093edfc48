"""Explains text that is not valid SQL: what is wrong, where, and whether that is certain.

The parser does not know all of Spark's SQL, so text that it does not understand may be valid. Certain errors are those of any SQL parser:
open quotes or parentheses, an end inside a condition, a first word that begins no query, and a misspelled keyword where the parser stops.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a query could not be parsed: a sentence, and the offsets of the place."""

    reason: str
    start: int = 0
    end: int = 0
    help: str = ""
    certain: bool = False


def fault_of(text: str, error: ParseError | TokenError, tokens: tuple[Token, ...]) -> Fault:
    """What is wrong; certain causes first."""
    details: list[dict[str, Any]] = getattr(error, "errors", [])
    if not details:
        return _open_quote(text)
    end = _offset(text, details[0]["line"], details[0]["col"])
    start = max(0, end - len(details[0]["highlight"]))
    return (
        _wrong_start(tokens) or _unbalanced_brackets(tokens) or _misspelt_keyword(tokens, start) or _parsers(text, details[0], start, end)
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
    help_ = _did_you_mean(word.text) or "a query begins with `SELECT` or `WITH`"
    return Fault(f"a query cannot begin with `{word.text}`", word.start, word.end + 1, help_, True)


def _open_quote(text: str) -> Fault:
    opened, at = "", 0
    for index, letter in enumerate(text):
        if not opened and letter in _QUOTES:
            opened, at = letter, index
        elif letter == opened and text[index - 1] != "\\":
            opened = ""
    if not opened:
        return Fault("a text or a comment in it does not end")
    return Fault(f"a text begins with {opened} and does not end", at, at + 1, f"close it with {opened}", True)


def _unbalanced_brackets(tokens: tuple[Token, ...]) -> Fault | None:
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
    index = next((i for i, token in enumerate(tokens) if token.start >= start), len(tokens))
    for token in tokens[max(0, index - 1) : index + 1]:
        following = tokens[index].text.upper() if index < len(tokens) else ""
        if token.text.upper() in _BY and following != "BY":
            return Fault(f"`{token.text}` needs `BY`", token.start, token.end + 1, f"write `{token.text.upper()} BY`", True)
        if token.token_type == TokenType.VAR and (help_ := _did_you_mean(token.text)):
            return Fault(f"`{token.text}` is not expected here", token.start, token.end + 1, help_, True)
    return None


def _parsers(text: str, detail: dict[str, Any], start: int, end: int) -> Fault:
    """The parser's message, without the names of its classes."""
    word, ends = detail["highlight"], not text[end:].strip(" \n\t;")
    if "missing for" in detail["description"] or (ends and "but got" in detail["description"]):
        return Fault(f"something is missing after `{word}`", start, end, "", ends)
    if detail["description"].startswith(("Expecting", "Expected")) and "<" not in detail["description"]:
        said = detail["description"].removeprefix("Expecting ").removeprefix("Expected ")
        return Fault(f"`{word}` is followed by an unexpected word: expected {said}", start, end)
    return Fault(f"`{word}` is not expected here", start, end)


def _did_you_mean(word: str) -> str:
    close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=0.75)
    return f"did you mean `{close[0]}`?" if close and not word.upper().startswith(close[0]) else ""


def _offset(text: str, line: int, column: int) -> int:
    before = text.split("\n")[: line - 1]
    return sum(len(each) + 1 for each in before) + column
