"""Files and folders on the command line: a folder means all pipelines in it and below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import Diagnostic, MillstreamError

_PATTERNS = ("*.yaml", "*.yml")
_SIGNS = ("sources", "sinks")
"""A file with one of these sections is a pipeline, or a part of one."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files for a command."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[Path, str], ...] = ()
    """Files of the folders that are not pipelines, with the reason."""
    problems: tuple[Diagnostic, ...] = ()
    """Folders without a pipeline."""


def find_pipelines(paths: Iterable[Path]) -> Found:
    """The given files and the pipelines in the given folders, each once. Files that other pipelines include are skipped."""
    files: dict[Path, Path] = {}
    """Resolved path → path as given."""
    skipped: dict[Path, str] = {}
    problems: list[Diagnostic] = []
    given = list(paths)
    for path in given:
        if not path.is_dir():
            files.setdefault(path.resolve(), path)
            continue
        reasons = {each: _reason_to_skip(each) for each in _yaml_files(path)}
        pipelines = [each for each, reason in reasons.items() if not reason]
        if not pipelines:
            problems.append(_no_pipeline(path, len(reasons)))
        for each in pipelines:
            files.setdefault(each.resolve(), each)
        skipped |= {each: reason for each, reason in reasons.items() if reason}
    parts = _parts(files.values(), given) if any(path.is_dir() for path in given) else set()
    skipped |= {path: "included by another file" for path in files.values() if path in parts}
    return Found(tuple(path for path in files.values() if path not in parts), tuple(skipped.items()), tuple(problems))


def _parts(files: Iterable[Path], named: Iterable[Path]) -> set[Path]:
    from millstream.spec.included_files import find_parts

    return find_parts(files, named)


def _yaml_files(folder: Path) -> Iterator[Path]:
    """The YAML files in a folder and below it, sorted by path. Hidden folders, such as those of checkpoints, are left out."""
    found = {path for pattern in _PATTERNS for path in folder.rglob(pattern) if path.is_file()}
    for path in sorted(found):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _reason_to_skip(path: Path) -> str:
    """Why a YAML file is not a pipeline; empty for a pipeline, also with errors."""
    from millstream.spec.includes import INCLUDE
    from millstream.spec.layers import CONFIG_NAME, read_text
    from millstream.spec.loader import SECTIONS
    from millstream.spec.tree import Map, TreeReader

    if path.name == CONFIG_NAME:
        return "connections and settings"
    text = ""
    try:
        text = read_text(path)
        tree = TreeReader(str(path), text).read()
    except MillstreamError:  # the loader reports the error of a file that looks like a pipeline
        return "" if not text or any(line.startswith(_SIGNS) for line in text.splitlines()) else "not YAML"
    names = set(tree.entries) if isinstance(tree, Map) else set()
    return "" if names & set(_SIGNS) or (INCLUDE in names and names <= set(SECTIONS)) else "not a pipeline"


def _no_pipeline(folder: Path, others: int) -> Diagnostic:
    only = f", only {others} other YAML file{'' if others == 1 else 's'}" if others else ""
    help_ = "name another folder, or write a pipeline with `millstream init NAME`"
    return Diagnostic("MS172", f"there is no pipeline in `{folder}`{only}", help=help_)
