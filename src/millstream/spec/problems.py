"""Translates pydantic's findings: one sentence, the field's position, the nearest fix.

A misspelled required option is one mistake but two findings (unknown and missing): they are shown as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from millstream.errors import Diagnostic, OptionError, Span, nearest
from millstream.plan.option_mistakes import WANTED, requirement
from millstream.secrets import is_secret_name
from millstream.spec.commas import split_texts
from millstream.spec.tree import Map, Tree, descend, locate, locate_in_text
from millstream.sql.check.expressions import expression_fault
from millstream.sql.check.query import place_between
from millstream.sql.check.syntax import Fault

_SIMILAR = 0.6
"""From here on two names are taken for one, misspelled."""
_CODES = {"duration": "MS009", "size": "MS009", "column_type": "MS015"}


def diagnose(
    error: ValidationError, tree: Tree, what: str, models: Iterable[type[BaseModel]], prefix: tuple[Any, ...] = ()
) -> list[Diagnostic]:
    """All findings of one validation. `what` names the block, such as "source `orders`"."""
    models = list(models)
    details = error.errors(include_url=False, include_context=True)
    found = _without_echoes(details, models)
    placed = [(prefix + _own(detail["loc"], tree, prefix, models), detail) for detail in found]
    findings: dict[tuple[Any, ...], Diagnostic] = {}
    placed, cut = split_texts(placed, tree, what)
    findings |= {("cut", index): finding for index, finding in enumerate(cut)}
    for place, detail in placed:
        if columns := (detail.get("ctx") or {}).get("columns"):
            findings |= {(*place, column): _wrong_column(place, column, reason, tree, what) for column, reason in columns.items()}
        elif not _is_redundant(place, detail, placed):
            needed = [str(other["loc"][-1]) for other in details if other["type"] == "missing" and other["loc"][:-1] == detail["loc"][:-1]]
            key = (place, detail["type"] == "missing" and detail["loc"])
            findings.setdefault(key, _diagnostic(detail, place, tree, what, needed, models))
    return list(findings.values())


def _wrong_column(place: tuple[Any, ...], column: str, reason: str, tree: Tree, what: str) -> Diagnostic:
    return Diagnostic("MS015", f"`{place[-1] if place else column}` in {what}: {reason}", locate(tree, (*place, column)))


def field_names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def fields_at(location: tuple[Any, ...], models: list[type[BaseModel]]) -> list[str]:
    """The fields that are allowed at a place inside a block."""
    here = models
    for step in location:
        inner = _models_of(step, here)
        chosen = [model for model in here if step in (model.__name__, *get_args(_type_of(model)))]
        here = inner or chosen or here
    return [name for model in here for name in field_names(model)]


def _models_of(field: Any, models: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """The models that a field of one of these takes."""
    return [
        each for model in models for name, info in model.model_fields.items() if field in (name, info.alias) for each in _models_in(info)
    ]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that an annotation mentions."""
    annotation = getattr(annotation, "annotation", annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def unknown_field(name: str, what: str, span: Span, known: Sequence[str], needed: Sequence[str] = ()) -> Diagnostic:
    """`needed` are required fields that are missing: an unknown field is taken for a similar one of them, or for the only one."""
    help_ = "inside {…} quote a text with a comma" if " " in name else nearest(name, known)
    if meant := get_close_matches(name, needed, n=1, cutoff=_SIMILAR):
        help_ = f"did you mean `{meant[0]}`?"
    elif len(needed) == 1 and not get_close_matches(name, known, n=1, cutoff=0.8):
        help_ = f"did you mean `{needed[0]}`, which is missing?"
    return Diagnostic("MS006", f"unknown field `{name}` in {what}", span, help=help_)


def _own(location: tuple[Any, ...], tree: Tree, prefix: tuple[Any, ...], models: list[type[BaseModel]]) -> tuple[Any, ...]:
    """The path in the file: pydantic inserts the names of union members."""
    own: list[Any] = []
    for index, step in enumerate(location):
        here = descend(tree, (*prefix, *own))
        inside = isinstance(here, Map) and str(step) in here.entries
        last = index == len(location) - 1
        if inside or (isinstance(step, int) and not isinstance(here, Map)) or (last and step in fields_at(location[:-1], models)):
            own.append(step)
    return tuple(own)


def _is_redundant(place: tuple[Any, ...], detail: ErrorDetails, placed: list[tuple[tuple[Any, ...], ErrorDetails]]) -> bool:
    """If a value may have several types, only the type that it resembles is reported; a text resembles an expression, not a list."""
    if detail["type"] in WANTED and any(other == place and each["type"] == "expression" for other, each in placed):
        return True
    speaking = {"missing", "extra_forbidden", "value_error"}
    deeper = (other for other, _ in placed if len(other) > len(place) and other[: len(place)] == place)
    return detail["type"] not in speaking and bool(place) and any(deeper)


def _without_echoes(details: list[ErrorDetails], models: list[type[BaseModel]]) -> list[ErrorDetails]:
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    meant = {
        (*location[:-1], match)
        for location in unknown
        for match in get_close_matches(str(location[-1]), fields_at(location[:-1], models), n=1, cutoff=_SIMILAR)
    }
    return [detail for detail in details if not (detail["type"] == "missing" and detail["loc"] in meant)]


def _diagnostic(
    detail: ErrorDetails, place: tuple[Any, ...], tree: Tree, what: str, needed: list[str], models: list[type[BaseModel]]
) -> Diagnostic:
    kind, name = detail["type"], str(place[-1]) if place else ""
    context: dict[str, Any] = detail.get("ctx") or {}
    if kind == "extra_forbidden":
        inside = f"`{place[-2]}` of {what}" if len(detail["loc"]) > 1 and len(place) > 1 else what
        return unknown_field(name, inside, locate(tree, place, key=True), fields_at(detail["loc"][:-1], models), needed)
    if kind == "missing":
        owner = f"`{place[-2]}` in {what}" if len(place) > 1 and isinstance(place[-2], str) else what
        return Diagnostic("MS007", f"{owner} needs `{name}`", locate(tree, place[:-1], key=True))
    span = locate(tree, place)
    if kind == "expression":
        return _not_an_expression(str(detail["input"]), place, tree, f"`{name}` in {what}")
    if kind in _CODES:
        return Diagnostic(_CODES[kind], f"`{name}` in {what}: {detail['msg']}", span)
    if kind == "value_error":
        return _value_error(context.get("error", detail["msg"]), name, what, span)
    if kind == "literal_error":
        options = [option.strip(" '") for option in str(context.get("expected", "")).replace(" or ", ",").split(",")]
        help_ = nearest(str(detail["input"]), options) + _or_a_map(place, models)
        return Diagnostic("MS008", f"`{name}` in {what} cannot be {format_value(detail['input'])}", span, help=help_)
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        return _wrong_tag(detail, context, place, tree, what)
    got = "" if is_secret_name(name) else f", got {format_value(detail['input'])}"
    sentence = f"{requirement(detail)}{got}"
    help_ = _as_a_map(name, detail["input"], place, models) if WANTED.get(kind) == "a map" else ""
    return Diagnostic("MS008", f"`{name}` in {what} {sentence}", span, help=help_)


def _not_an_expression(text: str, place: tuple[Any, ...], tree: Tree, option: str) -> Diagnostic:
    fault = expression_fault(text) or Fault("not understood")
    at = place_between(text, fault.start, fault.end)
    span = locate_in_text(tree, place, at.line, at.column, fault.end - fault.start) if fault.end else locate(tree, place)
    return Diagnostic("MS027", f"{option} is not an expression: {fault.reason}", span, help=fault.help)


def _as_a_map(name: str, given: Any, place: tuple[Any, ...], models: list[type[BaseModel]]) -> str:
    """`trigger: available_now` → the correct form, if the word is one of the option's types, or its only required field."""
    fields = [info for model in models for field, info in model.model_fields.items() if place[-1:] in ((field,), (info.alias,))]
    wanted = [model for info in fields for model in _models_in(info)]
    kinds = [kind for model in wanted for kind in get_args(_type_of(model))]
    close = get_close_matches(given, kinds, n=1, cutoff=0.7) if isinstance(given, str) else []
    if close:
        return f"write `{name}: {{type: {close[0]}}}`"
    needed = [info.alias or field for model in wanted for field, info in model.model_fields.items() if info.is_required()]
    return f"write `{name}: {{{needed[0]}: {given}}}`" if len(wanted) == len(needed) == 1 and isinstance(given, str | int) else ""


def _or_a_map(place: tuple[Any, ...], models: list[type[BaseModel]]) -> str:
    """The other form of an option that takes a word or a map."""
    here = models
    for step in place:
        here = _models_of(step, here)
    names = [f"`{name}`" for model in here for name in field_names(model)]
    return f", or a map with {', '.join(names)}" if names else ""


def _type_of(model: type[BaseModel]) -> Any:
    return getattr(model.model_fields.get("type"), "annotation", None)


def _value_error(reason: object, name: str, what: str, span: Span) -> Diagnostic:
    code = reason.code if isinstance(reason, OptionError) else "MS008"
    return Diagnostic(code, f"`{name}` in {what}: {reason}" if name else f"{what}: {reason}", span)


def _wrong_tag(detail: ErrorDetails, context: dict[str, Any], place: tuple[Any, ...], tree: Tree, what: str) -> Diagnostic:
    options = [tag.strip(" '") for tag in str(context.get("expected_tags", "")).split(",") if tag.strip()]
    given = str(context.get("tag", ""))
    message = f"`{place[-1]}` in {what} has no type `{given}`" if given else f"`{place[-1]}` in {what} needs a `type`"
    return Diagnostic("MS008" if given else "MS007", message, locate(tree, (*place, "type")), help=nearest(given, options))


def format_value(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text[:40]}…`" if len(text) > 40 else f"`{text}`"
