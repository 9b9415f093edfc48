"""The option `--inspect`, whose value may be left out: `--inspect`, `--inspect 9000`, `--inspect 0.0.0.0:9000`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from millstream.plan.run_options import InspectAddress

_FLAG = "--inspect"
_VALUE = re.compile(r"(?:(\[[0-9a-fA-F:]+\]|[\w.-]+):)?(\d{1,5})")


def complete_inspect(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, with the value of the option joined to it, and an empty one where it is left out."""
    found: list[str] = []
    for argument in arguments:
        if found and found[-1] == _FLAG:
            if _VALUE.fullmatch(argument) or (":" in argument and not Path(argument).exists()):
                found[-1] = f"{_FLAG}={argument}"
                continue
            found[-1] = f"{_FLAG}="
        found.append(argument)
    if found and found[-1] == _FLAG:
        found[-1] = f"{_FLAG}="
    return found


def inspect_address(text: str | None, flag: str = _FLAG) -> InspectAddress | None:
    """The address that is meant. None: no page is wanted."""
    from millstream.plan.run_options import InspectAddress

    if text is None:
        return None
    if not text:
        return InspectAddress()
    found = _VALUE.fullmatch(text)
    if found is None or int(found[2]) > 65_535:
        message = f"`{flag} {text}` is not an address"
        raise UsageError([Diagnostic("MS188", message, help=f"`{flag} 9000` or `{flag} 127.0.0.1:9000`")])
    return InspectAddress((found[1] or "127.0.0.1").strip("[]"), int(found[2]))
