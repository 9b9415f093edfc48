"""`millstream explain MS012`: the meaning of a code, and the fix."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from millstream.cli.completion import error_codes
from millstream.codes import CODES
from millstream.errors import Diagnostic, UsageError, nearest


def explain(code: Annotated[str, typer.Argument(help="A code such as MS012.", show_default=False, autocompletion=error_codes)]) -> None:
    """Explain an error code."""
    name = _complete(code)
    known = CODES.get(name)
    if known is None:
        raise UsageError(Diagnostic("MS008", f"there is no code `{code}`", help=nearest(name, CODES)))
    print(f"{name}: {known.title}\n\n{known.why}\n\nWhat to do: {known.fix}")


def _complete(code: str) -> str:
    """The code in full: `ms24` and `24` mean MS024."""
    number = re.fullmatch(r"(?:MS)?[-_ ]?(\d{1,3})", code.strip().upper())
    return f"MS{int(number[1]):03}" if number else code.upper()
