"""The argument that names a run in progress, and the client that asks it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from millstream.inspector.client import Client

RunName = Annotated[
    str, typer.Argument(metavar="PIPELINE", help="The name of a running pipeline, its file, or its process.", show_default=False)
]


def client_of(name: str) -> Client:
    """The client of the run that the argument names."""
    from millstream.inspector.client import Client
    from millstream.inspector.registration import find

    return Client(find(_pipeline_name(name), os.environ))


def _pipeline_name(given: str) -> str:
    if given.endswith((".yaml", ".yml")) and Path(given).is_file():
        from millstream.cli.pipelines import load_or_fail

        return load_or_fail(Path(given), None, {}, warn=False).name
    return given
