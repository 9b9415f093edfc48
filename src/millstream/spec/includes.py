"""`include: [FILE, …]`: nodes, functions and connections of other files, merged into this one. Every value keeps its own position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from millstream.errors import Diagnostic, SpecError
from millstream.spec.own_files import find_own, read_own
from millstream.spec.problems import unknown_field
from millstream.spec.tree import Items, Map, Scalar, Tree, TreeReader
from millstream.spec.variables import interpolate

INCLUDE = "include"
SHARED = ("sources", "transforms", "sinks", "functions", "side_outputs", "connections")
"""The sections of an included file."""
OWN = ("name", "description", "settings", "tests")
"""What only the pipeline's own file has."""


class Includes:
    """Merges the files that a pipeline includes."""

    def __init__(self, pipeline: Path, environ: Mapping[str, str], problems: list[Diagnostic]) -> None:
        self._pipeline, self._folder, self._environ, self._problems = pipeline, pipeline.parent, environ, problems
        self._unread = 0
        self._merged: set[Path] = set()
        """A file that is included twice is merged once."""

    def merge(self, root: Map, path: Path, above: tuple[Path, ...] = ()) -> Map:
        """The tree with everything that it includes."""
        here = (*above, path)
        for name in _names(root.entries.get(INCLUDE), self._problems):
            try:
                found = find_own(name, self._folder, "the included file")
                self._refuse_circle(found, here, name)
                if found.resolve() not in self._merged:
                    self._merged.add(found.resolve())
                    root = self._join(root, self.merge(self._read(found, name), found, here))
            except SpecError as error:
                self._problems += error.diagnostics
                self._unread += 1
        if self._unread and not above:  # other findings may follow from the missing files
            raise SpecError(self._problems)
        return root

    def _refuse_circle(self, found: Path, above: tuple[Path, ...], name: Scalar) -> None:
        places = [path.resolve() for path in above]
        if found.resolve() in places:
            circle = [*above[places.index(found.resolve()) :], found]
            message = "a file includes itself: " + " → ".join(f"`{path}`" for path in circle)
            raise SpecError(Diagnostic("MS171", message, name.span, help="remove one of these includes"))

    def _read(self, path: Path, name: Scalar) -> Map:
        reader = TreeReader(str(path), read_own(path, name, "the included file"))
        tree = reader.read()
        self._problems += reader.problems
        if not isinstance(tree, Map):
            raise SpecError(Diagnostic("MS005", f"the included file `{path}` is not a map with {_section_names()}", name.span))
        for key, span in tree.keys.items():
            if key in OWN:
                help_ = f"move it to `{self._pipeline}`; an included file can have {_section_names()} and `{INCLUDE}`"
                self._problems.append(Diagnostic("MS006", f"an included file cannot have `{key}`", span, help=help_))
            elif key not in (*SHARED, INCLUDE) and not key.startswith("x-"):
                self._problems.append(unknown_field(key, "an included file", span, (*SHARED, INCLUDE, *OWN)))
        filled = interpolate(tree, self._environ, self._problems)
        assert isinstance(filled, Map)
        return filled

    def _join(self, root: Map, more: Map) -> Map:
        entries, keys = dict(root.entries), dict(root.keys)
        for section in SHARED:
            if section in more.entries:
                entries[section] = self._section(entries.get(section), more.entries[section], section)
                keys.setdefault(section, more.keys[section])
        return replace(root, entries=entries, keys=keys)

    def _section(self, first: Tree | None, second: Tree, section: str) -> Tree:
        if first is None or _empty(first):
            return second
        if not isinstance(second, Map) and not _empty(second):
            self._problems.append(Diagnostic("MS008", f"`{section}` must be a map", second.span))
        if not isinstance(first, Map) or not isinstance(second, Map):
            return first
        for name in first.entries:
            if name in second.entries:
                place = first.keys[name]
                message = f"{section.removesuffix('s')} `{name}` is defined twice"
                detail = f"the other one is in {place.file}:{place.line}"
                self._problems.append(Diagnostic("MS020", message, second.keys[name], detail=detail, help="rename one of them"))
        return replace(first, entries=second.entries | first.entries, keys=second.keys | first.keys)


def _names(tree: Tree | None, problems: list[Diagnostic]) -> list[Scalar]:
    """The files in a list, or one name."""
    given = tree.items if isinstance(tree, Items) else () if tree is None else (tree,)
    names = [each for each in given if isinstance(each, Scalar)]
    problems += [Diagnostic("MS008", "`include` must be a list of files", each.span) for each in given if not isinstance(each, Scalar)]
    return names


def _empty(tree: Tree) -> bool:
    return isinstance(tree, Scalar) and tree.value is None


def _section_names() -> str:
    return ", ".join(f"`{section}`" for section in SHARED)
