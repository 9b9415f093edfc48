"""Whether two texts are the same query: comments, white space, and the case of keywords and names without quotes do not matter."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from millstream.sql.check.query import tokens_of

_EXACT = {
    TokenType.STRING,
    TokenType.IDENTIFIER,
    TokenType.RAW_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.UNICODE_STRING,
    TokenType.HEX_STRING,
    TokenType.BIT_STRING,
    TokenType.BYTE_STRING,
    TokenType.HEREDOC_STRING,
}
"""Texts and names in quotes."""


def meaning_of(text: str) -> tuple[tuple[str, str], ...]:
    """What counts of a query's text: equal for texts that are the same query. A text that cannot be read is compared as it is."""
    tokens = tokens_of(text)
    if not tokens:
        return (("", text),)
    paths = any(token.token_type == TokenType.COLON for token in tokens)  # `v:Price` reads the field of a VARIANT, case and all
    return tuple((token.token_type.name, _text(token, paths)) for token in tokens)


def _text(token: Token, exact: bool) -> str:
    return token.text if exact or token.token_type in _EXACT else token.text.lower()
