"""Name → component class. Built-in components and plugins are found in the same way: entry points of one group.

An entry is called `<kind>.<type>` (`source.file`, `sink.acme.sqs`), so that looking a name up imports one class and not the
world: `millstream check` starts in a moment because of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

GROUP = "millstream.plugins"
ENGINES = "millstream.engines"

Kind = Literal["source", "transform", "sink"]
KINDS: tuple[Kind, ...] = ("source", "transform", "sink")


@dataclass(frozen=True)
class Registry:
    """The components that a process knows."""

    entries: dict[str, EntryPoint] = field(default_factory=dict)

    @classmethod
    def installed(cls) -> Registry:
        return cls({entry.name: entry for entry in entry_points(group=GROUP)})

    def types(self, kind: Kind) -> tuple[str, ...]:
        """The type names of a kind, sorted."""
        return tuple(sorted(name.partition(".")[2] for name in self.entries if name.startswith(f"{kind}.")))

    def find(self, kind: Kind, type_name: str) -> Any | None:
        """The class, or None when nobody brings it."""
        entry = self.entries.get(f"{kind}.{type_name}")
        return entry.load() if entry else None

    def classes(self, kinds: Iterable[Kind] = KINDS) -> list[tuple[Kind, str, Any]]:
        """Everything, loaded: for the JSON Schema and the docs."""
        return [(kind, name, self.find(kind, name)) for kind in kinds for name in self.types(kind)]


def engine() -> Any:
    """The engine that runs plans. The front doors ask here, so that they need not import Spark."""
    (entry,) = entry_points(group=ENGINES, name="spark")
    return entry.load()
