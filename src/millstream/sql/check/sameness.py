"""Whether two texts are the same query: comments, white space and the case of SQL's own words do not matter.

The case of names does: `m.Key` and `m.key` are different entries of a map, and a struct's fields keep their names in `to_json`.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from millstream.sql.check.query import tokens_of

_WORDS = {
    TokenType.SELECT,
    TokenType.FROM,
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.ORDER_BY,
    TokenType.LIMIT,
    TokenType.JOIN,
    TokenType.ON,
    TokenType.ALIAS,
    TokenType.AND,
    TokenType.OR,
    TokenType.NOT,
    TokenType.IN,
    TokenType.IS,
    TokenType.NULL,
    TokenType.BETWEEN,
    TokenType.DISTINCT,
    TokenType.UNION,
    TokenType.WITH,
}
"""Words of SQL that are hardly ever names."""


def meaning_of(text: str) -> tuple[tuple[str, str], ...]:
    """What counts of a query's text: equal for texts that are the same query. A text that cannot be read is compared as it is."""
    tokens = tokens_of(text)
    if not tokens:
        return (("", text),)
    before = [None, *tokens]
    return tuple((token.token_type.name, _text(token, around)) for token, around in zip(tokens, before, strict=False))


def _text(token: Token, before: Token | None) -> str:
    named = before is not None and before.token_type in {TokenType.DOT, TokenType.COLON}
    return token.text.lower() if token.token_type in _WORDS and not named else token.text
