"""A plugin without its options class, for workers: its own methods, and the values of its options.

The class of a plugin derives from Millstream's, which need not be installed on a worker. So a plain object travels instead: it has the
methods, constants and options that the plugin's own classes define, except those that only the driver calls. Its secrets are revealed on
the driver, since a worker has neither the driver's environment nor its files.
"""

from __future__ import annotations

from functools import cached_property
from types import FunctionType, SimpleNamespace
from typing import Any

from pydantic import BaseModel

from millstream.secrets import Secret
from millstream.worker.plugin_tasks import RevealedSecret

_TRAVELLING = (FunctionType, staticmethod, classmethod, property, cached_property, str, int, float, bytes, tuple, frozenset)
"""Methods and constants. Anything else in a class belongs to its options."""


def for_workers(component: Any, method: str) -> Any:
    """The plain object. `method` is the one that workers call; other methods of the base class belong to the driver."""
    own = [found for found in reversed(type(component).__mro__) if _is_own(found)]
    base = {name for found in type(component).__mro__ if not _is_own(found) for name in vars(found)} - {method}
    members = {name: _bare(value) for found in own for name, value in vars(found).items() if _travels(name, value, base)}
    plain: Any = type(type(component).__name__, (), {**members, "__module__": type(component).__module__})()
    for name in type(component).model_fields:
        plain.__dict__[name] = _plain(getattr(component, name))
    return plain


def _is_own(found: type) -> bool:
    """Whether the plugin has defined the class."""
    return found is not object and found.__module__.partition(".")[0] not in {"millstream", "pydantic", "typing", "abc"}


def _travels(name: str, value: Any, base: set[str]) -> bool:
    if name in base or name.startswith(("__", "model_", "_abc_")):
        return False
    return isinstance(value, _TRAVELLING)


def _bare(value: Any) -> Any:
    """A function without its annotations: they may name classes that a worker does not have."""
    if isinstance(value, staticmethod | classmethod):
        return type(value)(_bare(value.__func__))
    if isinstance(value, cached_property):
        again = cached_property(_bare(value.func))
        again.attrname = value.attrname
        return again
    if isinstance(value, property):
        return property(_bare(value.fget))
    if not isinstance(value, FunctionType):
        return value
    copy = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, value.__closure__)
    copy.__kwdefaults__, copy.__module__, copy.__qualname__ = value.__kwdefaults__, value.__module__, value.__qualname__
    return copy


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return RevealedSecret(value.reveal())
    if isinstance(value, BaseModel):
        return SimpleNamespace(**{name: _plain(each) for name, each in value.__dict__.items()})
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value
