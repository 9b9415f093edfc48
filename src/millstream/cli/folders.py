"""Files and folders on the command line: a folder stands for all the pipelines in it and below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import Diagnostic, MillstreamError

_PATTERNS = ("*.yaml", "*.yml")
_SIGNS = ("sources", "sinks")
"""A file that holds neither is no pipeline of its own."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a command is to look at."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[Path, str], ...] = ()
    """Files in folders that are no pipelines, and why."""
    problems: tuple[Diagnostic, ...] = ()
    """Folders without a pipeline."""
    from_folders: frozenset[Path] = frozenset()
    """The files that nobody has named one by one."""

    def without(self, included: Iterable[Path]) -> Found:
        """Files that others include are parts of those, unless they were named."""
        parts = set(included)
        out = [path for path in self.files if path in self.from_folders and path.resolve() in parts]
        skipped = (*self.skipped, *((path, "included by another file") for path in out))
        return Found(tuple(path for path in self.files if path not in out), skipped, self.problems, self.from_folders)


def find_pipelines(paths: Iterable[Path]) -> Found:
    """The pipelines that files and folders stand for, each once."""
    files: dict[Path, None] = {}
    skipped: dict[Path, str] = {}
    problems: list[Diagnostic] = []
    listed: set[Path] = set()
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        reasons = {each: _reason_to_skip(each) for each in _yaml_files(path)}
        pipelines = [each for each, reason in reasons.items() if not reason]
        if not pipelines:
            problems.append(_no_pipeline(path, len(reasons)))
        listed |= {each for each in pipelines if each not in files}
        files |= dict.fromkeys(pipelines)
        skipped |= {each: reason for each, reason in reasons.items() if reason}
    return Found(tuple(files), tuple(skipped.items()), tuple(problems), frozenset(listed))


def _yaml_files(folder: Path) -> Iterator[Path]:
    """Sorted by path; hidden folders, such as those of checkpoints, stay out."""
    found = {path for pattern in _PATTERNS for path in folder.rglob(pattern) if path.is_file()}
    for path in sorted(found):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def _reason_to_skip(path: Path) -> str:
    """Why a YAML file is no pipeline; empty when it is one, or is meant to be."""
    from millstream.spec.layers import CONFIG_NAME, read_text
    from millstream.spec.tree import Map, TreeReader

    if path.name == CONFIG_NAME:
        return "connections and settings"
    text = ""
    try:
        text = read_text(path)
        tree = TreeReader(str(path), text).read()
    except MillstreamError:  # a broken file that looks like a pipeline is told by whoever loads it
        return "" if not text or any(line.startswith(_SIGNS) for line in text.splitlines()) else "not YAML"
    return "" if isinstance(tree, Map) and any(sign in tree.entries for sign in _SIGNS) else "not a pipeline"


def _no_pipeline(folder: Path, others: int) -> Diagnostic:
    seen = f", only {others} other YAML file{'' if others == 1 else 's'}" if others else ""
    help_ = "name another folder, or write a pipeline with `millstream init NAME`"
    return Diagnostic("MS172", f"there is no pipeline in `{folder}`{seen}", help=help_)
