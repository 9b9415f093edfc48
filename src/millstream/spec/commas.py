"""Finds unquoted texts with a comma inside {…}: YAML cuts them at the comma, and the rest becomes a key without a value."""

from __future__ import annotations

from typing import Any

from pydantic_core import ErrorDetails

from millstream.errors import Diagnostic
from millstream.spec.tree import Map, Scalar, Tree, descend, plain

Placed = list[tuple[tuple[Any, ...], ErrorDetails]]


def split_texts(placed: Placed, tree: Tree, what: str) -> tuple[Placed, list[Diagnostic]]:
    """The findings that are not about the pieces of such a text, and one finding for each text."""
    found, gone = list[Diagnostic](), set[tuple[Any, ...]]()
    for parent in dict.fromkeys(place[:-1] for place, _ in placed if place):
        around = descend(tree, parent)
        for name, pieces in _cut_texts(around) if isinstance(around, Map) else ():
            assert isinstance(around, Map)
            gone |= {(*parent, each) for each in (name, *pieces)}
            whole = ", ".join([str(plain(around.entries[name])), *pieces])
            message = f"`{name}` in {what} ends at a comma: `{plain(around.entries[name])}`"
            help_ = f'inside {{…}} quote a text with a comma: `{name}: "{whole}"`'
            found.append(Diagnostic("MS027", message, around.entries[name].span, help=help_))
    return [(place, detail) for place, detail in placed if tuple(map(str, place)) not in {tuple(map(str, each)) for each in gone}], found


def _cut_texts(around: Map) -> list[tuple[str, list[str]]]:
    """Options with an open bracket, each with the keys that contain the rest."""
    found: list[tuple[str, list[str]]] = []
    depth = 0
    for name, child in around.entries.items():
        text = child.value if isinstance(child, Scalar) and child.plain else ""
        if depth > 0 and text is None:
            found[-1][1].append(name)
            depth += _depth(name)
        elif isinstance(text, str) and (depth := _depth(text)) > 0:
            found.append((name, []))
    return [(name, pieces) for name, pieces in found if pieces]


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")
