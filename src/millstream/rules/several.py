"""Checks on pipelines that run in one process and on one Spark: their settings must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from millstream.errors import Diagnostic
from millstream.plan.document import functions_of
from millstream.plan.run_options import checkpoint_of
from millstream.plan.topology import Topology

_SESSION: dict[str, Callable[[Topology], Any]] = {
    "master": lambda topology: topology.settings.master,
    "profile": lambda topology: topology.settings.profile,
    "driver_memory": lambda topology: topology.settings.driver_memory,
}
"""Settings of the JVM that all of them share."""


def conflicts(pipelines: Mapping[Path, Topology]) -> list[Diagnostic]:
    """Why the pipelines, by their files, cannot run together; empty when they can."""
    found = [finding for one, other in combinations(pipelines.items(), 2) for finding in (*_same(one, other), *_modules(one[1], other[1]))]
    return list(dict.fromkeys([*found, *_settings(list(pipelines.values()))]))


def _same(first: tuple[Path, Topology], second: tuple[Path, Topology]) -> Iterator[Diagnostic]:
    (file, one), (other_file, other) = first, second
    if one.name == other.name:
        help_ = "give one of them another `name`; or run them one by one"
        yield Diagnostic("MS173", f"two pipelines are called `{one.name}`: in `{file}` and in `{other_file}`", help=help_)
    elif checkpoint_of(one) == checkpoint_of(other):
        message = f"pipelines `{one.name}` and `{other.name}` would use the same checkpoint: `{checkpoint_of(one)}`"
        yield Diagnostic("MS173", message, help="leave `checkpoint` out, or give each its own")


def _settings(topologies: Sequence[Topology]) -> Iterator[Diagnostic]:
    help_ = "pipelines of one run share one Spark: give them the same value, such as by `--set NAME=VALUE`, or run them one by one"
    first = topologies[0]
    for other in topologies[1:]:
        for name, value in _SESSION.items():
            if value(first) != value(other):
                told = " and ".join(f"`{value(each)}` in `{each.name}` ({each.origins.get(name, 'default')})" for each in (first, other))
                yield Diagnostic("MS173", f"`{name}` is {told}", help=help_)
        for name in sorted({*first.settings.spark, *other.settings.spark}):
            if first.settings.spark.get(name) != other.settings.spark.get(name):  # values may be secret
                yield Diagnostic("MS173", f"`{name}` differs between `{first.name}` and `{other.name}`", help=help_)


def _modules(one: Topology, other: Topology) -> Iterator[Diagnostic]:
    """A Python process can load only one module of a name."""
    if one.directory.resolve() == other.directory.resolve() or not (_calls_python(one) and _calls_python(other)):
        return
    for name in sorted(_beside(one.directory) & _beside(other.directory)):
        message = f"`{one.name}` and `{other.name}` both have a Python module `{name}` beside them, and one process can load only one"
        yield Diagnostic("MS173", message, help="rename one of them, or run the pipelines one by one")


def _calls_python(topology: Topology) -> bool:
    return bool(topology.functions or topology.settings.plugins) or any(functions_of(node.component) for node in topology.nodes)


def _beside(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
