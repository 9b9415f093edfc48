"""The files that pipelines include, read from their lists `include` alone: errors elsewhere in a pipeline do not matter."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from millstream.errors import MillstreamError
from millstream.spec.includes import INCLUDE
from millstream.spec.layers import read_text
from millstream.spec.tree import Items, Map, Scalar, Tree, TreeReader
from millstream.spec.variables import interpolate

_SECTION = re.compile(r"^include[ \t]*:.*(?:\n(?:[ \t\]#-].*|))*", re.MULTILINE)
"""The section `include` in the text of a file."""


def find_parts(files: Iterable[Path], named: Iterable[Path]) -> set[Path]:
    """The files that are only parts of other files in the list.

    A file that the user has named is not a part. Files that include each other are not parts either, unless another file includes them:
    otherwise no check would report this error.
    """
    included = {path: included_files(path) for path in files}
    keep = {path.resolve() for path in named}
    roots = [path for path in included if path.resolve() in keep or not _is_included(path, included)]
    return {path for path in included if path.resolve() not in keep and _is_included(path, {root: included[root] for root in roots})}


def included_files(pipeline: Path) -> set[Path]:
    """The files that a pipeline includes, directly or through other files."""
    found: set[Path] = set()
    unread = [pipeline]
    while unread:
        for path in _direct_includes(unread.pop()):
            if path.resolve() not in found:
                found.add(path.resolve())
                unread.append(path)
    return found


def _is_included(path: Path, included: dict[Path, set[Path]]) -> bool:
    return any(path.resolve() in parts for other, parts in included.items() if other != path)


def _direct_includes(path: Path) -> Iterator[Path]:
    tree = _include_list(path)
    names = interpolate(tree, os.environ, []) if tree is not None else None
    for name in names.items if isinstance(names, Items) else (names,):
        if isinstance(name, Scalar) and isinstance(name.value, str):
            yield path.parent / name.value


def _include_list(path: Path) -> Tree | None:
    """The value of `include`. In a file that is not YAML, the lines of this section are read alone."""
    try:
        text = read_text(path)
    except MillstreamError:
        return None
    section = _SECTION.search(text)
    for each in (text, section[0] if section else ""):
        try:
            tree = TreeReader(str(path), each).read()
        except MillstreamError:
            continue
        return tree.entries.get(INCLUDE) if isinstance(tree, Map) else None
    return None
