"""What the recognisers share: the text of an exception with its causes, sentences out of it, and places in the pipeline."""

from __future__ import annotations

import re
from collections.abc import Sequence

from millstream.errors import Span
from millstream.plan.nodes import Node

CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


def text_of(error: BaseException) -> str:
    """Everything that the exception and its causes say."""
    parts = [f"{type(error).__name__}: {error}"]
    java = getattr(error, "java_exception", None)
    if java is not None:
        parts.append(str(java.toString()))
        cause = java.getCause()
        for _ in range(8):
            if cause is None:
                break
            parts.append(str(cause.toString()))
            cause = cause.getCause()
    if error.__cause__ is not None:
        parts.append(text_of(error.__cause__))
    return "\n".join(parts)


def sentence_of(text: str, condition: re.Match[str]) -> str:
    rest = text[condition.end() :].strip()
    sentence = re.split(r"\s*(?:SQLSTATE|== SQL|\n|\. (?=[A-Z]))", rest)[0].strip().rstrip(".")
    return sentence[:1].lower() + sentence[1:]


def first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"


def named_node(nodes: Sequence[Node], name: str) -> Node | None:
    return next((node for node in nodes if node.name == name), None)


def place_in(node: Node | None, *path: str) -> Span | None:
    return node.place(*path) if node else None
