"""Name → component class. Built-in components and plugins are registered in the same way: as entry points of one group.

An entry is called `<kind>.<type>` (`source.file`, `sink.acme.sqs`), so that looking up a name imports only one class. This keeps
`millstream check` fast. Files beside a pipeline that `settings.plugins` names are loaded, and their decorated classes join the entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, Protocol

from millstream.errors import SpecError
from millstream.registry.loading import ambiguous, load_class, plugins_in, require_usable
from millstream.registry.mark import INTERFACE, PLUGIN_KINDS, PluginKind, plugin

__all__ = [
    "ENGINES",
    "GROUP",
    "INTERFACE",
    "KINDS",
    "PLUGIN_KINDS",
    "FileEntry",
    "Kind",
    "PluginKind",
    "Registry",
    "built_in_classes",
    "engine",
    "origin_of",
    "plugin",
]

GROUP = "millstream.plugins"
ENGINES = "millstream.engines"

Kind = Literal["source", "transform", "sink"]
KINDS: tuple[Kind, ...] = ("source", "transform", "sink")
"""The kinds of nodes."""


class Entry(Protocol):
    """An entry point, or a class from a file."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    def load(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A class that a file beside the pipeline defines, or that a program hands over."""

    name: str
    value: str
    found: Any = field(repr=False, compare=False)

    def load(self) -> Any:
        return self.found


@dataclass(frozen=True)
class Registry:
    """The components that a process knows."""

    entries: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    """Name of an entry → the entries with that name; more than one is a mistake, which is reported when the name is used."""

    @classmethod
    def installed(cls) -> Registry:
        return cls().plus(entry_points(group=GROUP))

    def plus(self, more: Iterable[Entry]) -> Registry:
        """These entries and others. The same class found twice counts once."""
        entries = dict(self.entries)
        for entry in more:
            before = entries.get(entry.name, ())
            if all(other.value != entry.value for other in before):
                entries[entry.name] = (*before, entry)
        return Registry(entries)

    def with_files(self, references: Iterable[str], directory: Path) -> Registry:
        """These entries and the plugins of files beside a pipeline; SpecError when one cannot be loaded."""
        registry = self
        for reference in references:
            registry = registry.plus(_entries_in(reference, directory))
        return registry

    def with_classes(self, classes: Iterable[Any]) -> Registry:
        """These entries and classes that a Python program hands over, where no entry has their name."""
        more = [FileEntry(f"{found.plugin_kind}.{found.type}", f"{found.__module__}:{found.__qualname__}", found) for found in classes]
        return self.plus(entry for entry in more if entry.name not in self.entries)

    def types(self, kind: PluginKind) -> tuple[str, ...]:
        """The type names of a kind, sorted."""
        return tuple(sorted(name.partition(".")[2] for name in self.entries if name.startswith(f"{kind}.")))

    def find(self, kind: PluginKind, type_name: str) -> Any | None:
        """The class, or None when no package has it; SpecError when the plugin cannot be used."""
        found = self.entries.get(f"{kind}.{type_name}", ())
        if len(found) > 1:
            raise ambiguous(kind, type_name, map(origin_of, found))
        return load_class(found[0].load, f"{kind}.{type_name}", origin_of(found[0])) if found else None

    def usable(self, kind: PluginKind) -> list[tuple[str, Any]]:
        """The classes of a kind, without plugins that cannot be used: `millstream plugin list` says why."""
        found = []
        for name in self.types(kind):
            with suppress(SpecError):
                found.append((name, self.find(kind, name)))
        return found

    def classes(self, kinds: Iterable[Kind] = KINDS) -> list[tuple[Kind, str, Any]]:
        """Everything, loaded: for the JSON Schema and the docs."""
        return [(kind, name, self.find(kind, name)) for kind in kinds for name in self.types(kind)]


def origin_of(entry: Entry) -> str:
    """Where a plugin comes from: the name of the installed package, or the file."""
    package = getattr(entry, "dist", None)
    return str(package.name) if package is not None else entry.value.partition(":")[0]


def _entries_in(reference: str, directory: Path) -> Iterable[FileEntry]:
    for mark, found in plugins_in(reference, directory):
        require_usable(found, mark, reference)
        yield FileEntry(mark.entry, f"{reference}:{found.__qualname__}", found)


@cache
def built_in_classes() -> dict[str, str]:
    """Class → module of the built-in sources and sinks, which have public names."""
    entries = [entry for entry in entry_points(group=GROUP) if entry.value.startswith("millstream.connectors.")]
    return {entry.attr: entry.module for entry in entries}


def engine() -> Any:
    """The engine that runs plans. YAML and Python get it here, so that they do not import Spark."""
    (entry,) = entry_points(group=ENGINES, name="spark")
    return entry.load()
