"""`millstream savepoint`: copy the checkpoint of a running pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.running import RunName, client_of
from millstream.units import size_of


def savepoint(
    pipeline: RunName,
    folder: Annotated[Path, typer.Argument(help="A folder that does not exist.", show_default=False)],
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
) -> None:
    """Copy the checkpoint of a running pipeline between two of its epochs. The pipeline goes on."""
    found = client_of(pipeline).order("savepoint", folder=str(folder.absolute()))
    if format is Format.json:
        print(json.dumps(found))
    else:
        narrate(f"✓ copied {found['files']} files, {size_of(found['bytes'])}; use it with `--checkpoint {folder}`")
