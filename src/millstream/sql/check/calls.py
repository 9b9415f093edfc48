"""Calls in a text of SQL, found among its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot.tokenizer_core import Token, TokenType

_OPENERS, _CLOSERS = {TokenType.L_PAREN, TokenType.L_BRACKET}, {TokenType.R_PAREN, TokenType.R_BRACKET}


def mentions(text: str, names: Iterable[str]) -> list[str]:
    """Which of the functions a text seems to call; quick, and never too few."""
    return [name for name in names if re.search(rf"(?<![\w.]){re.escape(name)}`?\s*\(", text, re.IGNORECASE)]


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
