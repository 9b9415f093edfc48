"""Identifies the notebook cell, or the input at a prompt, that is running: a cell that runs again creates its nodes again.

A front end such as JupyterLab sends the cell's id; without one, a cell is identified by its text. At Python's own prompt every input is a
separate cell. A program has no cells.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import Span


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a cell."""

    key: str
    """The same for every run of the cell; empty when unknown."""
    run: object = field(default_factory=object)
    """Different for every run."""

    def repeats(self, other: Cell) -> bool:
        """Whether this is a later run of the same cell."""
        return bool(self.key) and self.key == other.key and self.run != other.run


def running_cell(place: Span | None) -> Cell | None:
    """The cell that creates a node at this place; None in a program."""
    shell = running_shell()
    if shell is not None:
        return Cell(_key(shell), shell.execution_count)
    return Cell("") if place is not None and place.file.startswith(("<stdin>", "<python-input")) else None


def running_shell() -> Any:
    """The shell of IPython or of a notebook; None in a program."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _key(shell: Any) -> str:
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return str(parent.get("metadata", {}).get("cellId", "")) or str(shell.user_ns.get("In", [""])[-1])
