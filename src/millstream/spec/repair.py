"""Builds a block without its mistake, so that the other rules can check the rest of the file.

A misspelled option is read under the similar name; any other wrong value is removed, first the smallest wrong part and then the whole
option. If the block still cannot be built, it is skipped. A repaired node never runs: its mistake has been reported as an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from millstream.spec.problems import fields_at

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Repaired(Generic[Model]):
    """Options without their mistakes."""

    options: Model
    left_out: frozenset[str] = frozenset()
    """The options that differ from the user's."""


def repair(model: type[Model], values: Mapping[str, Any], error: ValidationError, models: list[type[BaseModel]]) -> Repaired[Model] | None:
    """The valid options, with defaults for the others; None when the block cannot be built."""
    details = error.errors(include_url=False, include_context=False)
    touched = frozenset(str(detail["loc"][0]) for detail in details if detail["loc"])
    for deep in (True, False):
        rest = deepcopy(dict(values))
        for detail in details:
            _take_out(rest, detail, models, deep)
        try:
            return Repaired(model.model_validate(rest), touched)
        except ValidationError:
            continue
    return None


def _take_out(values: dict[str, Any], detail: ErrorDetails, models: list[type[BaseModel]], deep: bool) -> None:
    place, here = detail["loc"], values
    for step in place[:-1] if deep else ():
        if not isinstance(inner := here.get(str(step)), dict):
            break
        here, place = inner, place[1:]
    name = str(place[0]) if place else ""
    value = here.pop(name, None)
    meant = _similar_name(name, fields_at(detail["loc"][:-1], models)) if detail["type"] == "extra_forbidden" else ""
    if meant and meant not in here:
        here[meant] = value


def _similar_name(name: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.6)), "")
