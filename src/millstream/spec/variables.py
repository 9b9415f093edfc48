"""Replaces `${NAME}` and `${NAME:-default}` inside values, after parsing, so that a variable can never change the file's structure.

An unquoted value gets its type afterwards: `rows: ${ROWS}` is a number when ROWS is one. `$${` stays `${`.
Scripts keep their text: `${…}` is theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from millstream.errors import Diagnostic, nearest
from millstream.spec.tree import Items, Map, Scalar, Tree, resolve

VERBATIM = {"script": "script"}
"""Type of a node → its option whose text is code that has `${…}` of its own."""
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}")


def interpolate(tree: Tree, environ: Mapping[str, str], problems: list[Diagnostic]) -> Tree:
    """The same tree with variables replaced; missing ones are reported."""
    if isinstance(tree, Map):
        code = _code_of(tree)
        filled = {name: child if name == code else interpolate(child, environ, problems) for name, child in tree.entries.items()}
        return replace(tree, entries=filled)
    if isinstance(tree, Items):
        return replace(tree, items=tuple(interpolate(child, environ, problems) for child in tree.items))
    if not isinstance(tree.value, str) or "${" not in tree.value:
        return tree
    return _fill_in(tree, environ, problems)


def _code_of(block: Map) -> str:
    kind = block.entries.get("type")
    return VERBATIM.get(str(kind.value), "") if isinstance(kind, Scalar) else ""


def _fill_in(scalar: Scalar, environ: Mapping[str, str], problems: list[Diagnostic]) -> Scalar:
    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        if match[1] in environ:
            return environ[match[1]]
        if match[3] is None:
            help_ = (
                nearest(match[1], environ)
                if "did you mean" in nearest(match[1], environ)
                else f"export {match[1]}=…, or `${{{match[1]}:-default}}`"
            )
            problems.append(Diagnostic("MS011", f"the variable `{match[1]}` is not set", scalar.span, help=help_))
        return match[3] or ""

    text = _VARIABLE.sub(value, scalar.value)
    lines = scalar.lines if len(scalar.lines) > 1 else ()  # a text on one line no longer has the columns of the file
    return replace(scalar, value=resolve(text) if scalar.plain else text, lines=lines)
