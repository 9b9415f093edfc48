"""The decorator that names a class of a plugin.

The name and the version of the interface are kept on the class, so that nothing is global.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

PluginKind = Literal["source", "transform", "sink", "udf", "preprocessor", "side_output"]
PLUGIN_KINDS: tuple[PluginKind, ...] = get_args(PluginKind)
INTERFACE = 1
"""The version of the interface between Millstream and plugins. It changes when a plugin would have to change."""
_MARK = "__millstream_plugin__"
NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?")
"""`name` or `namespace.name`."""
_BASES = frozenset({"millstream", "pydantic", "typing", "abc", "builtins"})
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True, slots=True)
class PluginMark:
    """What the decorator says of a class."""

    kind: PluginKind
    name: str
    interface: int

    @property
    def entry(self) -> str:
        """The name of its entry point."""
        return f"{self.kind}.{self.name}"


def plugin(name: str, *, interface: int = INTERFACE) -> Callable[[Class], Class]:
    """Make a class a plugin. `name` is `name` or `namespace.name`, which pipelines give as `type`; `interface` is the version that the
    plugin was written for.
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"`{name}` cannot be the name of a plugin: `name` or `namespace.name`, of a-z, 0-9 and _")

    def mark(decorated: Class) -> Class:
        kind = getattr(decorated, "plugin_kind", "")
        if kind not in PLUGIN_KINDS:
            raise TypeError(f"`{decorated.__name__}` is no plugin: derive it from ArrowSource, ArrowTransform, ArrowSink, Udf, …")
        decorated.type = name  # type: ignore[attr-defined]  # every base class of plugins declares it
        setattr(decorated, _MARK, PluginMark(kind, name, interface))
        return decorated

    return mark


def mark_of(found: Any) -> PluginMark | None:
    """The mark on a class itself: a subclass does not inherit it."""
    return vars(found).get(_MARK) if isinstance(found, type) else None


def is_own(found: type) -> bool:
    """Whether a plugin has defined the class, which is one of its bases or itself."""
    return found.__module__.partition(".")[0] not in _BASES
