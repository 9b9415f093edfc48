"""Options whose text is in a file, such as `sql_file`: the text replaces the option that it stands for.

So a plan contains only the text: a change of the file is a change of the plan, and messages point to lines of that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from millstream.errors import Diagnostic, SpecError
from millstream.plan.components import Component
from millstream.spec.own_files import find_own, read_own
from millstream.spec.problems import field_names
from millstream.spec.tree import Map, Tree, text_scalar
from millstream.spec.variables import VERBATIM, interpolate


class TextFiles:
    """Reads the files that blocks name."""

    def __init__(self, folder: Path, environ: Mapping[str, str], problems: list[Diagnostic]) -> None:
        self._folder, self._environ, self._problems = folder, environ, problems

    def fill_in(self, model: type[Component], block: Map, what: str) -> Map | None:
        """The block with the texts of its files; None when one of them cannot be read."""
        for option, target in model.text_files.items():
            block = self._correct_key(block, option, model, what)
            if option not in block.entries:
                continue
            if target in block.entries:
                message = f"{what} has both `{target}` and `{option}`"
                self._problems.append(Diagnostic("MS008", message, block.keys[option], help="keep one of them"))
                return None
            text = self._text(block.entries[option], f"`{option}`", code=VERBATIM.get(model.type) == target)
            if text is None:
                return None
            block = _replace_entry(block, option, target, text)
        return block

    def _text(self, name: Tree, what: str, *, code: bool) -> Tree | None:
        try:
            path = find_own(name, self._folder, what)
            text = text_scalar(str(path), read_own(path, name, what))
            return text if code else interpolate(text, self._environ, self._problems)
        except SpecError as error:
            self._problems += error.diagnostics
            return None

    def _correct_key(self, block: Map, option: str, model: type[Component], what: str) -> Map:
        """The block with a misspelled key of the option corrected."""
        strange = [name for name in block.entries if name not in field_names(model)]
        meant = next(iter(get_close_matches(option, strange, n=1, cutoff=0.8)), option)
        if meant == option:
            return block
        self._problems.append(
            Diagnostic("MS006", f"unknown field `{meant}` in {what}", block.keys[meant], help=f"did you mean `{option}`?")
        )
        return _replace_entry(block, meant, option, block.entries[meant])


def _replace_entry(block: Map, old: str, new: str, value: Tree) -> Map:
    entries = {new if name == old else name: value if name == old else child for name, child in block.entries.items()}
    return replace(block, entries=entries, keys={new if name == old else name: span for name, span in block.keys.items()})
