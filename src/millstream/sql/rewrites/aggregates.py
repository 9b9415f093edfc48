"""Aggregates that Spark's streams lack, written with those that they have. The text around them stays as it was.

    count(DISTINCT ip)          →   size(collect_set(ip))
    top_k(amount, 3)            →   slice(sort_array(collect_list(amount), false), 1, 3)
    first(page)                 →   min_by(page, at)             (in windows: by event time, and not by arrival)

A `FILTER (WHERE …)` after the call moves to the aggregate inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import TokenError, tokenize
from sqlglot.tokenizer_core import Token, TokenType

from millstream.plan.components import TextPlace
from millstream.sql.check.query import replace


@dataclass(frozen=True, slots=True)
class Call:
    """A function call as it stands in a text."""

    name: str
    arguments: tuple[str, ...]
    distinct: bool
    filter: str
    """` FILTER (WHERE …)`, or nothing."""
    place: TextPlace


Macro = Callable[[Call], str | None]


def expand(text: str, time: str = "", *, distinct: bool = True) -> str:
    """The text with calls written out. `time` is the event time, by which `first` and `last` go. `distinct`: also `count(DISTINCT …)`."""
    macros: dict[str, Macro] = {"count": _count, "top_k": _top_k} if distinct else {"top_k": _top_k}
    if time:
        macros |= {"first": _ends("min_by", time), "first_value": _ends("min_by", time)}
        macros |= {"last": _ends("max_by", time), "last_value": _ends("max_by", time)}
    edits = [(call.place, macros[call.name](call)) for call in calls(text, macros)]
    return replace(text, [(place, new) for place, new in edits if new is not None])


def calls(text: str, names: Mapping[str, object] | frozenset[str]) -> Iterator[Call]:
    """The outermost calls of these functions."""
    try:
        tokens = tokenize(text, dialect="spark")
    except TokenError:
        return
    index = 0
    while index < len(tokens) - 1:
        if tokens[index].text.lower() in names and tokens[index + 1].token_type == TokenType.L_PAREN:
            end = _closing(tokens, index + 1)
            last = _filter_end(tokens, end)
            yield _call(text, tokens, index, end, last)
            index = last
        index += 1


def _call(text: str, tokens: list[Token], start: int, end: int, last: int) -> Call:
    inner = tokens[start + 2 : end]
    distinct = bool(inner) and inner[0].token_type == TokenType.DISTINCT
    commas = [token for token, depth in _depths(inner) if depth == 0 and token.token_type == TokenType.COMMA]
    first = inner[1].start if distinct and len(inner) > 1 else tokens[start + 1].end + 1
    bounds = [first, *(token.start for token in commas), tokens[end].start]
    arguments = [text[left:right].lstrip(",").strip() for left, right in pairwise(bounds)]
    place = TextPlace(tokens[start].start, tokens[last].end + 1, tokens[start].line, tokens[start].col)
    condition = text[tokens[end].end + 1 : tokens[last].end + 1] if last > end else ""
    return Call(tokens[start].text.lower(), tuple(argument for argument in arguments if argument), distinct, condition, place)


def _closing(tokens: list[Token], opening: int) -> int:
    """The parenthesis that closes one."""
    for offset, (token, depth) in enumerate(_depths(tokens[opening + 1 :])):
        if depth == 0 and token.token_type == TokenType.R_PAREN:
            return opening + 1 + offset
    return len(tokens) - 1


def _depths(tokens: list[Token]) -> Iterator[tuple[Token, int]]:
    depth = 0
    for token in tokens:
        if token.token_type == TokenType.R_PAREN and depth:
            depth -= 1
        yield token, depth
        depth += token.token_type == TokenType.L_PAREN


def _filter_end(tokens: list[Token], end: int) -> int:
    following = tokens[end + 1 : end + 3]
    if len(following) == 2 and following[0].text.upper() == "FILTER" and following[1].token_type == TokenType.L_PAREN:
        return _closing(tokens, end + 2)
    return end


def _count(call: Call) -> str | None:
    if not call.distinct:
        return None
    one = call.arguments[0]
    if len(call.arguments) > 1:
        missing = " OR ".join(f"({argument}) IS NULL" for argument in call.arguments)
        one = f"IF({missing}, NULL, struct({', '.join(call.arguments)}))"
    return f"size(collect_set({one}){call.filter})"


def _top_k(call: Call) -> str | None:
    if len(call.arguments) == 2:
        value, count = call.arguments
        return f"slice(sort_array(collect_list({value}){call.filter}, false), 1, {count})"
    value, count, by = call.arguments
    pairs = f"sort_array(collect_list(named_struct('by', {by}, 'value', {value})){call.filter}, false)"
    return f"transform(slice({pairs}, 1, {count}), pair -> pair.value)"


def _ends(function: str, time: str) -> Macro:
    return lambda call: f"{function}({call.arguments[0]}, struct({time}, {call.arguments[0]})){call.filter}"
