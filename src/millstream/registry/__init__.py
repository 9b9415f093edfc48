"""Name → component class. Built-in components and plugins are registered in the same way: as entry points of one group.

An entry is called `<kind>.<type>` (`source.file`, `sink.acme.sqs`), so that looking up a name imports only one class. This keeps
`millstream check` fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
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
        """The class, or None when no package has it."""
        entry = self.entries.get(f"{kind}.{type_name}")
        return entry.load() if entry else None

    def classes(self, kinds: Iterable[Kind] = KINDS) -> list[tuple[Kind, str, Any]]:
        """Everything, loaded: for the JSON Schema and the docs."""
        return [(kind, name, self.find(kind, name)) for kind in kinds for name in self.types(kind)]


@cache
def built_in_classes() -> dict[str, str]:
    """Class → module of the built-in sources and sinks, which have public names."""
    entries = [entry for entry in entry_points(group=GROUP) if entry.value.startswith("millstream.connectors.")]
    return {entry.attr: entry.module for entry in entries}


def engine() -> Any:
    """The engine that runs plans. YAML and Python get it here, so that they do not import Spark."""
    (entry,) = entry_points(group=ENGINES, name="spark")
    return entry.load()
