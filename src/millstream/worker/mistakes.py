"""Tells a mistake in a function of the user's from a row that the function cannot handle, by the exception."""

from __future__ import annotations

import re

_MISTAKES = re.compile(r"(NameError|UnboundLocalError|ImportError|ModuleNotFoundError|NotImplementedError|SyntaxError)\b")
_UNLESS_NULL = re.compile(r"(TypeError|AttributeError)\b")


def is_mistake(exception: str) -> bool:
    """Whether an exception, written as `Type: message`, would come with any row. A wrong type may come from a null, which is None."""
    return bool(_MISTAKES.match(exception) or (_UNLESS_NULL.match(exception) and "NoneType" not in exception))
