"""Mistakes in options given in Python: the same codes and suggestions that a file gets, instead of pydantic's messages.

Only Python programs call a class of options; `spec`, which has the positions, validates files.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from millstream.errors import Diagnostic, SpecError, nearest
from millstream.secrets import is_secret_name

WANTED = {
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "string_type": "text",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "callable_type": "a function",
}
"""Kind of a wrong value → what is wanted."""
_COMMON = {
    "primary_key": "`from_source(…, primary_key=…)` or `.to(…, primary_key=…)`",
    "on_error": "`from_source(…, on_error=…)` or `.to(…, on_error=…)`",
    "event_time": "`from_source(…, event_time=…)` or `.with_event_time(…)`",
    "trace": "`from_source(…, trace=…)`",
}
"""Options of nodes, which components do not have."""
_LIMITS = {"greater_than": ("gt", "greater than"), "greater_than_equal": ("ge", "at least")}
_LIMITS |= {"less_than": ("lt", "less than"), "less_than_equal": ("le", "at most")}

if TYPE_CHECKING:  # type checkers keep the constructor that pydantic derives from the fields
    from pydantic._internal._model_construction import ModelMetaclass

    Checked = ModelMetaclass
else:

    class Checked(type(BaseModel)):
        """The metaclass of options that Python programs call."""

        def __call__(self, *args: Any, **options: Any) -> Any:
            try:
                return super().__call__(*args, **options)
            except ValidationError as error:
                raise SpecError(mistakes(error, self, f"`{self.__name__}`")) from None


def mistakes(error: ValidationError, model: type[BaseModel], what: str) -> list[Diagnostic]:
    """All mistakes, one finding per option."""
    known = [info.alias or name for name, info in model.model_fields.items()]
    details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "expression")  # it says more than other types
    meant = {match for detail in details if detail["type"] == "extra_forbidden" for match in _near(detail, known)}
    found: dict[tuple[Any, ...], Diagnostic] = {}
    for detail in details:
        name = str(detail["loc"][0]) if detail["loc"] else ""
        if not (detail["type"] == "missing" and name in meant):
            found.setdefault((name, detail["type"] == "missing"), _diagnostic(detail, name, known, what))
    return list(found.values())


def requirement(detail: ErrorDetails) -> str:
    """What a value must be, as the end of a sentence."""
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind in WANTED:
        return f"must be {WANTED[kind]}"
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = context[name]
        return f"must be {words} {limit:g}" if isinstance(limit, int | float) else f"must be {words} {limit}"
    if kind in {"too_short", "string_too_short"} and context.get("min_length") == 1:
        return "must not be empty"
    return detail["msg"][:1].lower() + detail["msg"][1:]


def _near(detail: ErrorDetails, known: list[str]) -> Iterator[str]:
    yield from get_close_matches(str(detail["loc"][0]), known, n=1, cutoff=0.6)


def _diagnostic(detail: ErrorDetails, name: str, known: list[str], what: str) -> Diagnostic:
    kind, context = detail["type"], detail.get("ctx") or {}
    if kind == "extra_forbidden" and name not in known:
        help_ = f"`{name}` is given where it is used: {_COMMON[name]}" if name in _COMMON else nearest(name, known)
        return Diagnostic("MS006", f"unknown option `{name}` of {what}", help=help_)
    if kind == "missing" and len(detail["loc"]) == 1:
        return Diagnostic("MS007", f"{what} needs `{name}`")
    option = f"`{name}` of {what}" if name else what
    if kind == "literal_error":
        options = [option.strip(" '") for option in str(context.get("expected", "")).replace(" or ", ",").split(",")]
        given = "that value" if is_secret_name(name) else f"{detail['input']!r}"
        return Diagnostic("MS008", f"{option} cannot be {given}", help=nearest(str(detail["input"]), options))
    if "error" in context or kind == "expression":
        return Diagnostic("MS027" if kind == "expression" else "MS008", f"{option}: {context.get('error') or detail['msg']}")
    return Diagnostic("MS008", f"{option} {requirement(detail)}")
