"""TypeScript → JavaScript, once, on the driver; and where the types cannot be parsed, the place.

The stripper prints the program anew, so lines move. What remains are the user's own tokens in their order: aligning the tokens of both
texts gives, for every line that runs, the line that the user wrote.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache

from millstream.scripts.tokens import Token, tokens_of

_REASON = re.compile(r"source \w+ error in [^:]*: (.*)", re.DOTALL)
_RUN, _PUT_IN = 3, 16
"""Tokens that must be the same, and the most that the stripper puts in at a place."""
_STOPPER = "\n`"
"""A template that does not end: the parser complains of it when it comes that far."""


class StripError(ValueError):
    """The text is not TypeScript: a sentence, and the token at which it ends to be."""

    def __init__(self, reason: str, at: Token | None) -> None:
        super().__init__(reason)
        self.reason, self.at = reason, at


@lru_cache(maxsize=64)
def strip_types(text: str) -> str:
    """The script as JavaScript. ImportError when the package is not installed."""
    failure = _failure(text)
    if isinstance(failure, str):
        return failure
    from millstream.scripts.guest_cache import DeepError

    raise StripError(_sentence(str(failure)), None if isinstance(failure, DeepError) else _place(text))


@lru_cache(maxsize=64)
def lines_of(source: str, stripped: str) -> tuple[int, ...]:
    """For each line of the stripped text, the line of the source that it comes from."""
    before, after = tokens_of(source), tokens_of(stripped)
    lines: dict[int, int] = {}
    for old, new in _pairs([token.text for token in before], [token.text for token in after]):
        lines.setdefault(after[new].line, before[old].line)
    found, last = [], 1
    for line in range(1, stripped.count("\n") + 2):
        last = lines.get(line, last)
        found.append(last)
    return tuple(found)


def _pairs(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of the tokens that both lists have, in order. Where they differ, both go on at the nearest three tokens in common: what
    was taken out may be long, what was put in is short.
    """
    places: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(before)):
        places.setdefault(tuple(before[at : at + _RUN]), []).append(at)
    old = new = 0
    while old < len(before) and new < len(after):
        if before[old] == after[new]:
            yield old, new
            old, new = old + 1, new + 1
            continue
        ways = []
        for skipped in range(min(_PUT_IN, len(after) - new)):
            known = places.get(tuple(after[new + skipped : new + skipped + _RUN]), [])
            if (index := bisect_left(known, old)) < len(known):
                ways.append((known[index] - old + skipped, known[index], new + skipped))
        _, old, new = min(ways, default=(0, old, new + _PUT_IN))


def _failure(text: str) -> str | Exception:
    """The stripped text, or why there is none."""
    from millstream.scripts.guest_cache import transform

    try:
        return transform(text)
    except RuntimeError as error:
        return error


def _place(text: str) -> Token | None:
    """The token that the parser stumbles over: the first one with which it no longer comes to the end of what it is given."""
    tokens = tokens_of(text)
    if open_text := next((token for token in tokens if _is_open(token)), None):
        return open_text
    low, high = 0, len(tokens)
    while low < high:
        middle = (low + high) // 2
        if _comes_to_end(text[: tokens[middle].end]):
            low = middle + 1
        else:
            high = middle
    return tokens[low] if low < len(tokens) else (tokens[-1] if tokens else None)


def _comes_to_end(text: str) -> bool:
    failure = _failure(text + _STOPPER)
    return isinstance(failure, str) or "nterminated" in str(failure)


def _is_open(token: Token) -> bool:
    """A text without its end."""
    return token.kind in {"string", "template"} and (len(token.text) < 2 or token.text[-1] != token.text[0])


def _sentence(text: str) -> str:
    found = _REASON.search(text)
    return (found[1] if found else text).strip().splitlines()[0][:200]
