"""Reads the docstrings under fields from the source, for the documentation and the JSON Schema.

Pydantic can do this while it builds a class, but that would slow down every start of the command line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from itertools import pairwise


@lru_cache(maxsize=256)
def field_docs(model: type) -> dict[str, str]:
    """Field → its text, inherited ones included."""
    found: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if parent.__module__.split(".", maxsplit=1)[0] not in {"builtins", "pydantic", "typing", "abc"}:
            found |= _own_docs(parent)
    return found


def _own_docs(model: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    except (OSError, TypeError):
        return {}
    found: dict[str, str] = {}
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, text in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = inspect.cleandoc(str(text.value.value)).replace("\n", " ")
    return found
