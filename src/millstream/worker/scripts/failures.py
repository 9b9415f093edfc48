"""What is wrong with a row of a script: told to the user in the lines of the user's own text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

RAISED, WRONG_RESULT, LIMIT, NO_ENGINE, NOT_STARTED = "MS193", "MS194", "MS195", "MS196", "MS192"
_FRAME = re.compile(r"at (?:([^\n(]+?) \()?(?:<input>|script(?:, <anonymous>)?):(\d+):(\d+)\)?")
_FRAMES = 5
_OWN = "__putFields"
"""A function that the prelude makes from text, as the script is made: QuickJS gives both the same file name."""


@dataclass(frozen=True)
class SourceLines:
    """Where the lines of the evaluated text come from."""

    lines: tuple[int, ...] = ()
    """Line of the evaluated text → line of the user's; empty: they are the same."""
    shift: int = 0
    """Columns that were put before the first line."""

    def locate(self, line: int, column: int) -> tuple[int, int]:
        """The user's line and column; the column is 0 where only the line is known."""
        if self.lines:
            return (self.lines[min(line, len(self.lines)) - 1], 0)
        return (line, max(1, column - self.shift) if line == 1 else column)

    def frames(self, stack: str) -> list[tuple[str, int, int]]:
        """The user's functions in a stack, the innermost first."""
        found = [(match[1] or "", *self.locate(int(match[2]), int(match[3]))) for match in _FRAME.finditer(stack) if match[1] != _OWN]
        return found[:_FRAMES]


@dataclass(frozen=True)
class Fault:
    """Why a row, or a batch, has no result."""

    code: str
    message: str
    frames: tuple[tuple[str, int, int], ...] = ()

    @property
    def text(self) -> str:
        """For a dead letter: the sentence, and the stack."""
        return "\n".join([self.message, *(_frame_text(*frame) for frame in self.frames)])

    def as_mark(self, row: str, number: int) -> str:
        """For the driver, on one line."""
        _, line, column = self.frames[0] if self.frames else ("", 0, 0)
        said: dict[str, Any] = {"code": self.code, "message": self.message, "line": line, "column": column, "row": row, "number": number}
        return json.dumps({**said, "stack": [_frame_text(*frame) for frame in self.frames]})


class ScriptError(Exception):
    """A script failed and rows are not isolated."""


def raised(name: str, message: str, stack: str, lines: SourceLines) -> Fault:
    return Fault(RAISED, f"{name}: {message}" if message else name, tuple(lines.frames(stack)))


def wrong_result(message: str, stack: str, lines: SourceLines) -> Fault:
    return Fault(WRONG_RESULT, message, tuple(lines.frames(stack)))


def limit_met(limit: str, seconds: float, memory: int, rows: int) -> Fault:
    what = "this row" if rows == 1 else f"{rows} rows"
    said = {
        "time": f"the script did not return within {seconds:g} s for {what}",
        "memory": f"the script needs more than {memory >> 20} MB of memory for {what}",
        "stack": f"the script called itself too deeply for {what}",
    }
    return Fault(LIMIT, said[limit])


def _frame_text(name: str, line: int, column: int) -> str:
    place = f"line {line}" + (f", column {column}" if column else "")
    return f"    at {name} ({place})" if name else f"    at {place}"
