"""The argument that names a run in progress, and the client that asks it."""

from __future__ import annotations

import os
from collections.abc import Mapping
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

    return Client(find(*wanted_run(name)))


def wanted_run(given: str) -> tuple[str, Mapping[str, str], str]:
    """The name; and the checkpoint, if it is a file: pipelines of several folders may have one name."""
    if not (given.endswith((".yaml", ".yml")) and Path(given).is_file()):
        return given, os.environ, ""
    from millstream.cli.pipelines import load_or_fail
    from millstream.clients.storage import is_local, open_storage
    from millstream.plan.run_options import checkpoint_of

    topology = load_or_fail(Path(given), None, {}, warn=False)
    url = checkpoint_of(topology)
    return topology.name, os.environ, open_storage(url).url if is_local(url) else url
