"""Merges settings and connections from several layers: flag, environment, `millstream.yaml`, the pipeline, the default.

Each layer is a tree; a stronger one overrides a weaker one. Every value keeps its span, so that an error points at its place and `plan` can
show where a value comes from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from millstream.errors import Diagnostic, Span, SpecError
from millstream.spec.tree import Map, Scalar, Tree, TreeReader, resolve
from millstream.spec.variables import interpolate

CONFIG_NAME = "millstream.yaml"
PREFIX = "MILLSTREAM__"


def read_config(pipeline: Path, given: Path | None, environ: Mapping[str, str], problems: list[Diagnostic]) -> Map | None:
    """`millstream.yaml` next to the pipeline, or the file that `--config` names."""
    path = given or pipeline.parent / CONFIG_NAME
    if given is None and not path.is_file():
        return None
    reader = TreeReader(str(path), read_text(path))
    tree = reader.read()
    problems += reader.problems
    if tree is None:
        return None
    if not isinstance(tree, Map):
        raise SpecError(Diagnostic("MS005", f"`{path}` is not a map with `connections` and `settings`", tree.span))
    for name in tree.entries:
        if name not in {"connections", "settings"}:
            problems.append(
                Diagnostic("MS006", f"unknown field `{name}` in {path.name}", tree.keys[name], help="known: `connections`, `settings`")
            )
    filled = interpolate(tree, environ, problems)
    return filled if isinstance(filled, Map) else None


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(Diagnostic("MS001", f"`{path}` is not UTF-8 text (byte {error.start})")) from None
    except OSError as error:
        help_ = "`millstream init` writes a pipeline to start from" if isinstance(error, FileNotFoundError) else ""
        raise SpecError(Diagnostic("MS001", f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}", help=help_)) from None


def overlay(weak: Tree | None, strong: Tree | None) -> Tree | None:
    """Maps are merged key by key; anything else is replaced."""
    if strong is None or weak is None:
        return strong if strong is not None else weak
    if not (isinstance(weak, Map) and isinstance(strong, Map)):
        return strong
    entries = dict(weak.entries)
    for name, child in strong.entries.items():
        entries[name] = overlay(entries.get(name), child) or child
    return replace(weak, entries=entries, keys={**weak.keys, **strong.keys})


def from_environment(section: str, names: Mapping[str, Tree] | None, environ: Mapping[str, str]) -> Map | None:
    """`MILLSTREAM__SETTINGS__MASTER`, `MILLSTREAM__CONNECTIONS__KAFKA__BROKERS`: `__` between levels, names in capitals."""
    prefix = f"{PREFIX}{section.upper()}__"
    root: Map | None = None
    for variable, value in sorted(environ.items()):
        if variable.startswith(prefix):
            path = [part.lower() for part in variable.removeprefix(prefix).split("__")]
            if names:
                path[0] = next((name for name in names if normalise(name) == path[0].upper()), path[0])
            root = _merge_into(root, _chain(path, value, f"${variable}"))
    return root


def from_flags(flags: Mapping[str, str]) -> Map | None:
    """`{"trigger.type": "available_now"}` as given on the command line."""
    root: Map | None = None
    for path, value in flags.items():
        root = _merge_into(root, _chain(path.split("."), value, f"--{path.split('.')[0].replace('_', '-')}"))
    return root


def origin(tree: Tree, pipeline: str) -> str:
    """The layer of a value."""
    file = tree.span.file
    if file.startswith("--"):
        return "flag"
    if file.startswith("$"):
        return "environment"
    return "pipeline" if file == pipeline else Path(file).name


def normalise(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def _merge_into(root: Map | None, more: Map) -> Map | None:
    merged = overlay(root, more)
    return merged if isinstance(merged, Map) else None


def _chain(path: list[str], value: str, place: str) -> Map:
    span = Span(place, 1, 1, 2)
    tree: Tree = Scalar(resolve(value), span)
    for step in reversed(path):
        tree = Map({step: tree}, {step: span}, span)
    assert isinstance(tree, Map)
    return tree
