"""The text of an exception and its causes, and sentences taken from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")
"""Spark's name of an error."""
_DEEPEST = 8


def text_of(error: BaseException) -> str:
    """The messages of the exception and all its causes."""
    parts = [f"{type(error).__name__}: {error}"]
    parts += [str(java.toString()) for java in java_causes(getattr(error, "java_exception", None))]
    if error.__cause__ is not None:
        parts.append(text_of(error.__cause__))
    return "\n".join(parts)


def java_causes(java: Any) -> Iterator[Any]:
    """A Java exception and its causes."""
    for _ in range(_DEEPEST):
        if java is None:
            return
        yield java
        java = java.getCause()


def sentence_of(text: str, condition: re.Match[str]) -> str:
    """Spark's message for a condition, up to its first full stop, as the end of another sentence. Words of SQL keep their letters."""
    rest = text[condition.end() :].strip()
    sentence = re.split(r"\s*(?:SQLSTATE|== SQL|\n|\. (?=[A-Z]))", rest)[0].strip().rstrip(".")
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"
