"""`millstream functions [NAME]`: the functions that Millstream adds to Spark's SQL."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from millstream.cli.output import Format
from millstream.cli.rows import as_lines
from millstream.errors import Diagnostic, UsageError, nearest
from millstream.sql.own_functions import GROUPS, OWN_FUNCTIONS, OwnFunction


def functions(
    name: Annotated[str, typer.Argument(help="A function such as keccak256. Default: all.", show_default=False)] = "",
    format: Annotated[Format | None, typer.Option(help="`json` is the default in a pipe.", show_default=False)] = None,
) -> None:
    """List the functions that Millstream adds to Spark's SQL, or explain one."""
    as_json = (format or (Format.text if sys.stdout.isatty() else Format.json)) is Format.json
    if name:
        found = OWN_FUNCTIONS.get(name.lower())
        if found is None:
            raise UsageError(Diagnostic("MS008", f"Millstream adds no function `{name}`", help=nearest(name.lower(), OWN_FUNCTIONS)))
        print(json.dumps(_document(found)) if as_json else _page(found))
        return
    for group, members in GROUPS.items():
        if as_json:
            print("\n".join(json.dumps({"group": group, **_document(each)}) for each in members))
        else:
            print(f"{group}\n{as_lines([{'function': each.call, 'returns': each.returns} for each in members])}\n")


def _document(each: OwnFunction) -> dict[str, object]:
    examples = [{"call": call, "value": value} for call, value in each.examples]
    return {
        "name": each.name,
        "arguments": each.arguments,
        "returns": each.returns,
        "summary": each.summary,
        "nulls": each.nulls,
        "aliases": list(each.aliases),
        "examples": examples,
    }


def _page(each: OwnFunction) -> str:
    lines = [f"{each.call} → {each.returns}", "", each.summary, f"Nulls: {each.nulls}.", ""]
    lines += [f"  {call}  →  {value}" for call, value in each.examples]
    return "\n".join([*lines, *([f"\nAlso: {', '.join(each.aliases)}"] if each.aliases else [])])
