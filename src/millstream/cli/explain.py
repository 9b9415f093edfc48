"""`millstream explain MS012`: what a code means and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.codes import CODES
from millstream.errors import Diagnostic, UsageError, nearest


def explain(code: Annotated[str, typer.Argument(help="A code such as MS012.", show_default=False)]) -> None:
    """Explain an error code."""
    known = CODES.get(code.upper())
    if known is None:
        raise UsageError(Diagnostic("MS008", f"there is no code `{code}`", help=nearest(code.upper(), CODES)))
    print(f"{code.upper()}: {known.title}\n\n{known.why}\n\nWhat to do: {known.fix}")
