"""Finds unknown functions in a query: neither Spark, nor Millstream, nor the pipeline has them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from millstream.plan.components import TextPlace
from millstream.sql.check.builtins import BUILTINS, OWN_AGGREGATES
from millstream.sql.check.query import Query, place_between, tokens_of
from millstream.sql.own_functions import OWN_FUNCTIONS

_KNOWN = BUILTINS | OWN_AGGREGATES | set(OWN_FUNCTIONS)
_SYNTAX = frozenset({"byte", "character", "cube", "dec", "identifier", "integer", "interval", "long", "numeric", "real", "rollup", "short"})
_SYNTAX |= {
    "timediff",
    "timestamp_diff",
    "timestamp_ltz",
    "timestamp_ntz",
    "timestampadd",
    "timestampdiff",
    "try_cast",
    "values",
    "varchar",
}
"""Words that Spark's parser reads as calls although they are not functions."""


def unknown_functions(query: Query, own: set[str]) -> Iterator[tuple[str, TextPlace]]:
    """Each with its position. A name with a dot is in a catalog, which is unknown here."""
    for call in query.tree.find_all(exp.Func) if query.tree is not None else ():
        if "start" not in call.meta:
            continue
        start, end = call.meta["start"], call.meta["end"] + 1
        name = query.text[start:end]
        known = name.lower() in _KNOWN | _SYNTAX | own or name.lower().startswith("dynamic_table_")
        if not known and name.isidentifier() and _alone(query.text, start, end):
            yield name, place_between(query.text, start, end)


def nearest_function(name: str, own: set[str]) -> str:
    close = get_close_matches(name.lower(), sorted(_KNOWN | own), n=1, cutoff=0.75)
    return f"did you mean `{close[0]}`?" if close else "Spark has no such function; your own ones are declared under `functions:`"


def _alone(text: str, start: int, end: int) -> bool:
    """Whether the name is one word followed by a bracket."""
    tokens = tokens_of(text)
    for index, token in enumerate(tokens):
        if token.start == start and token.end + 1 == end and index + 1 < len(tokens):
            dotted = index > 0 and tokens[index - 1].token_type == TokenType.DOT
            return not dotted and tokens[index + 1].token_type == TokenType.L_PAREN and token.token_type == TokenType.VAR
    return False
