"""Options: unknown ones are refused, wrong values too, and none has a name that every node has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from millstream.errors import MillstreamError
from millstream.registry.loading import require_usable
from millstream.registry.mark import mark_of
from millstream.testing.conformance.promises import Check

_UNKNOWN = "no_such_option"


def checks(plugin: Any) -> Iterator[Check]:
    model = type(plugin)
    given = {name: getattr(plugin, name) for name in plugin.model_fields_set if name in model.model_fields}

    def has_a_name() -> str:
        mark = mark_of(model)
        if mark is None:
            return 'the class has no name: decorate it with `@millstream.plugin("my_plugin")`'
        require_usable(model, mark, model.__module__)
        return ""

    def refuses_unknown() -> str:
        accepted = _accepts(model, {**given, _UNKNOWN: 1})
        return f"the option `{_UNKNOWN}` is accepted; a misspelled one would be too: leave `extra` at `forbid`" if accepted else ""

    def refuses_wrong() -> str:
        loose = [name for name in model.model_fields if _accepts(model, {**given, name: _Nonsense()})]
        return f"the option `{loose[0]}` accepts any value: give it a type" if loose else ""

    def is_frozen() -> str:
        return "" if model.model_config.get("frozen") else "options can be changed during a run: leave `frozen` set"

    yield Check("name and version", has_a_name)
    yield Check("unknown option", refuses_unknown)
    yield Check("wrong option", refuses_wrong)
    yield Check("frozen options", is_frozen)


class _Nonsense:
    """A value that no option can take."""


def _accepts(model: Any, values: dict[str, Any]) -> bool:
    try:
        model.model_validate(values)
    except (ValidationError, MillstreamError, TypeError, ValueError, AttributeError):
        return False
    return True
