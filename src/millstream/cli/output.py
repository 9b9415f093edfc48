"""The output of commands: diagnostics with colour on a terminal and without it in a pipe; a stack trace only with `--debug`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from enum import StrEnum

from millstream.errors import BugError, Diagnostic, MillstreamError

_SHOWN = 20


class Format(StrEnum):
    """The format of a result: `text` for people, `json` for programs."""

    text = "text"
    json = "json"


def narrate(text: str) -> None:
    """Print a message that is not part of the result, on stderr."""
    print(text, file=sys.stderr)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Print the first twenty diagnostics on stderr, and the number of the others."""
    found = list(diagnostics)
    colour = _colour()
    for diagnostic in found[:_SHOWN]:
        print(_coloured(diagnostic) if colour else diagnostic.render(), file=sys.stderr)
        print(file=sys.stderr)
    if len(found) > _SHOWN:
        print(f"… and {len(found) - _SHOWN} more", file=sys.stderr)


def fail(error: BaseException, debug: bool) -> int:
    """Print a failure, and return its exit code."""
    if debug:
        traceback.print_exception(error)
    if not isinstance(error, MillstreamError):
        detail = f"{type(error).__name__}: {error}"
        error = BugError(
            Diagnostic(
                "MS099",
                "this is a bug in Millstream",
                detail=detail,
                help="please report it, with the output of the same command under `--debug`",
            )
        )
    show(error.diagnostics)
    codes = dict.fromkeys(diagnostic.code for diagnostic in error.diagnostics)
    if len(codes) == 1:
        narrate(f"more about this error: millstream explain {next(iter(codes))}")
    return error.exit_code


def _colour() -> bool:
    import os

    return sys.stderr.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _coloured(diagnostic: Diagnostic) -> str:
    lines = diagnostic.render().splitlines()
    tone = "31" if diagnostic.level == "error" else "33"
    head, _, rest = lines[0].partition(": ")
    painted = [f"\x1b[1;{tone}m{head}\x1b[0m\x1b[1m: {rest}\x1b[0m"]
    for line in lines[1:]:
        stripped = line.lstrip(" |")
        if stripped and set(stripped) == {"^"}:
            painted.append(line.replace(stripped, f"\x1b[1;{tone}m{stripped}\x1b[0m"))
        elif line.lstrip().startswith("= help:"):
            painted.append(line.replace("= help:", "\x1b[36m= help:\x1b[0m"))
        else:
            painted.append(line)
    return "\n".join(painted)
