"""A plugin without its options class, for workers: its own methods, and the values of its options.

The class of a plugin derives from Millstream's, which need not be installed on a worker. So a plain object travels instead: it has the
methods, constants and options that the plugin's own classes define, except those that only the driver calls; a model inside an option is
treated alike. Secrets are revealed on the driver, since a worker has neither the driver's environment nor its files.
"""

from __future__ import annotations

import io
import pickle
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

from pydantic import BaseModel

from millstream.registry.mark import is_own
from millstream.secrets import Secret
from millstream.worker.plugin_tasks import RevealedSecret

_METHODS = (FunctionType, staticmethod, classmethod, property, cached_property)


def for_workers(component: BaseModel, method: str = "") -> Any:
    """The plain object. `method` is the one that workers call; other methods of the base class belong to the driver."""
    model = type(component)
    own = [found for found in reversed(model.__mro__) if is_own(found)]
    base = {name for found in model.__mro__ if not is_own(found) for name in vars(found)} - {method}
    members = {name: value for found in own for name, value in vars(found).items()}
    stays = base | _validators(model)
    sent = {name: _bare(value) for name, value in members.items() if not (name in stays or name.startswith(("__", "_abc_")))}
    travelling = {name: value for name, value in sent.items() if isinstance(value, _METHODS) or _can_be_pickled(value)}
    plain: Any = type(model.__name__, (), {**travelling, "__module__": model.__module__})()
    for name in model.model_fields:
        plain.__dict__[name] = _plain(getattr(component, name))
    return plain


def _validators(model: type[BaseModel]) -> set[str]:
    """They have checked the options on the driver, and may need pydantic."""
    known = model.__pydantic_decorators__
    kinds = (known.validators, known.field_validators, known.root_validators, known.model_validators)
    return {name for kind in (*kinds, known.field_serializers, known.model_serializers) for name in kind}


class _Probe(pickle.Pickler):
    """Pickles what Spark's pickler can: that one knows how functions, classes and modules travel."""

    def reducer_override(self, value: Any) -> Any:
        return (repr, ("",)) if isinstance(value, FunctionType | type | ModuleType) else NotImplemented


def _can_be_pickled(value: Any) -> bool:
    """A lock or a connection in a class is the driver's."""
    try:
        _Probe(io.BytesIO()).dump(value)
    except Exception:  # noqa: BLE001 — the value's own code may raise anything
        return False
    return True


def _bare(value: Any) -> Any:
    """A function without its annotations: they may name classes that a worker does not have. One that keeps its results comes without
    them: they are the driver's.
    """
    if hasattr(value, "cache_parameters") and hasattr(value, "__wrapped__"):
        return _bare(value.__wrapped__)
    if isinstance(value, staticmethod | classmethod):
        return type(value)(_bare(value.__func__))
    if isinstance(value, cached_property):
        again = cached_property(_bare(value.func))
        again.attrname = value.attrname
        return again
    if isinstance(value, property):
        return property(_bare(value.fget))
    if not isinstance(value, FunctionType):
        return _plain(value)
    copy = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, value.__closure__)
    copy.__kwdefaults__, copy.__module__, copy.__qualname__ = value.__kwdefaults__, value.__module__, value.__qualname__
    return copy


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return RevealedSecret(value.reveal())
    if isinstance(value, BaseModel):
        return for_workers(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return type(value)._make(map(_plain, value))
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(map(_plain, value))
    return value
