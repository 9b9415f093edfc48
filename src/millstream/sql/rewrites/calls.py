"""Calls of the user's functions in SQL: found among the tokens, and for aggregates rewritten at their offsets.

Spark has no Python aggregates over streams, but it can collect a group's values, so

    my_median(x) FILTER (WHERE ok)     becomes     _scalar_of_my_median(collect_list(x) FILTER (WHERE ok))

where the registered function takes lists. Several arguments are collected as structs, since collected one by one they would lose
their nulls and with them their pairing. The rest of the text stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.expressions import quote_column
from millstream.sql.check.query import tokens_of

PREFIX = "_scalar_of_"
FIELD = "_millstream_"
"""Field names of collected arguments: `_millstream_1`, `_millstream_2`, …"""

_OPENERS, _CLOSERS = {TokenType.L_PAREN, TokenType.L_BRACKET}, {TokenType.R_PAREN, TokenType.R_BRACKET}
_CLAUSES = {"SELECT", "FROM", "WHERE", "BY", "HAVING", "ON"}
_AFTER_COLUMN = {"", ",", ")", ";", "FROM", "WHERE", "GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT", "LATERAL", "ORDER", "LIMIT"}


def mentions(text: str, names: Iterable[str]) -> list[str]:
    """Which of the functions a text seems to call; quick, and never too few."""
    return [name for name in names if re.search(rf"(?<![\w.]){re.escape(name)}`?\s*\(", text, re.IGNORECASE)]


def collected(text: str, aggregates: Iterable[str]) -> str:
    """The text with every call of an aggregate function turned into one over collected lists."""
    known = {name.lower(): name for name in aggregates}
    tokens = tokens_of(text) if mentions(text, known.values()) else ()
    edits: dict[int, str] = {}
    for index in range(len(tokens)):
        name = known.get(tokens[index].text.lower())
        if name and _is_call(tokens, index):
            _rewrite(text, tokens, index, name, edits)
    for index in sorted(edits, reverse=True):
        text = text[: tokens[index].start] + edits[index] + text[tokens[index].end + 1 :]
    return text


def _rewrite(text: str, tokens: tuple[Token, ...], index: int, name: str, edits: dict[int, str]) -> None:
    """Edit the tokens of one call. Calls may be nested, so edits of a token add up."""
    opening = index + 1
    closing = closing_of(tokens, opening)
    if closing == opening + 1:
        return  # no argument to collect: Spark says so

    def edit(position: int, before: str = "", after: str = "") -> None:
        edits[position] = before + edits.get(position, text[tokens[position].start : tokens[position].end + 1]) + after

    commas = commas_of(tokens, opening, closing)
    edits[index] = f"{PREFIX}{name}(collect_list"
    if commas:
        first = opening + 1 if tokens[opening + 1].token_type == TokenType.DISTINCT else opening
        edit(first, after=f"{' ' if first != opening else ''}named_struct('{FIELD}1', ")
        for number, comma in enumerate(commas, start=2):
            edit(comma, after=f" '{FIELD}{number}',")
        edit(closing, after=")")
    end = _end(tokens, closing)
    edit(end, after=")" + (_alias(text[tokens[index].start : tokens[end].end + 1]) if is_column(tokens, index, end) else ""))


def _is_call(tokens: tuple[Token, ...], index: int) -> bool:
    qualified = index > 0 and tokens[index - 1].token_type == TokenType.DOT
    literal = tokens[index].token_type == TokenType.STRING
    return not qualified and not literal and index + 1 < len(tokens) and tokens[index + 1].token_type == TokenType.L_PAREN


def closing_of(tokens: tuple[Token, ...], opening: int) -> int:
    """The bracket that closes the one at `opening`; the last token when none does, and Spark will say so."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].token_type == TokenType.L_PAREN) - (tokens[index].token_type == TokenType.R_PAREN)
        if depth == 0:
            return index
    return len(tokens) - 1


def commas_of(tokens: tuple[Token, ...], opening: int, closing: int) -> list[int]:
    """The commas between the arguments of a call."""
    found, depth = [], 0
    for index in range(opening + 1, closing):
        kind = tokens[index].token_type
        depth += (kind in _OPENERS) - (kind in _CLOSERS)
        if kind == TokenType.COMMA and depth == 0:
            found.append(index)
    return found


def is_column(tokens: tuple[Token, ...], index: int, end: int) -> bool:
    """Whether a call is a column of a SELECT all by itself, without a name: then its text is its name, as everywhere in SQL."""
    following = tokens[end + 1].text.upper() if end + 1 < len(tokens) else ""
    before = index - 1
    if not index or following not in _AFTER_COLUMN or tokens[before].text.upper() not in {"SELECT", "DISTINCT", "ALL", ","}:
        return False
    depth = 0
    while before >= 0 and depth >= 0:  # back to the word that opens this clause, past whole brackets
        kind, word = tokens[before].token_type, tokens[before].text.upper()
        depth += (kind in _CLOSERS) - (kind in _OPENERS)
        if depth == 0 and word in _CLAUSES:
            return word == "SELECT"
        before -= 1
    return False


def _alias(text: str) -> str:
    return f" AS {quote_column(text)}"


def _end(tokens: tuple[Token, ...], closing: int) -> int:
    """The last token of a call: FILTER and OVER belong to it."""
    end = closing
    for word in ("FILTER", "OVER"):
        following = end + 2
        if following < len(tokens) and tokens[end + 1].text.upper() == word:
            bracket = tokens[following].token_type == TokenType.L_PAREN
            end = closing_of(tokens, following) if bracket else following if word == "OVER" else end
    return end
