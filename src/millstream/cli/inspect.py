"""`millstream inspect`: the page of a running pipeline, or of the last run of a stopped one."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.inspect_option import inspect_address
from millstream.cli.output import narrate
from millstream.cli.running import client_of, wanted_run
from millstream.errors import Diagnostic, UsageError, nearest

if TYPE_CHECKING:
    from millstream.plan.run_options import InspectAddress


def inspect(
    pipeline: Annotated[
        str,
        typer.Argument(
            metavar="PIPELINE", help="The name of a running pipeline, its process, or the file of any pipeline.", show_default=False
        ),
    ],
    at: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the page is, if there is none yet. Default: a free port of this machine.")
    ] = "",
) -> None:
    """Print the link to the page of a running pipeline, and open the page if it has none yet.

    Of a pipeline that does not run, named by its file, the page shows the last run, from the history in the checkpoint, until Ctrl-C.
    """
    from millstream.inspector.registration import matching, running

    address = inspect_address(at, "--at")
    assert address is not None
    name, environ, checkpoint = wanted_run(pipeline)
    if not matching(name, running(environ), checkpoint):
        if checkpoint:
            _show_past(Path(pipeline), address)
            return
        _refuse(pipeline)
    link = client_of(pipeline).order("page", host=address.host, port=str(address.port))["url"]
    if at and f":{address.port}/" not in link:
        narrate("the run has a page already, at the address that it was opened at")
    print(link)


def _refuse(pipeline: str) -> None:
    """No pipeline of this name runs."""
    path = Path(pipeline)
    if path.suffix in {".yaml", ".yml"}:
        help_ = nearest(path.name, [each.name for each in path.parent.glob("*.y*ml")])
        raise UsageError([Diagnostic("MS001", f"there is no file `{pipeline}`", help=help_)])
    if path.exists():
        help_ = "name its YAML file; a pipeline in Python is shown while it runs, by its name"
        raise UsageError([Diagnostic("MS187", f"`{pipeline}` names no pipeline", help=help_)])
    try:
        client_of(pipeline)
    except UsageError as error:
        shown = "the page of its last run is shown if you name its file: `millstream inspect FILE`"
        found = error.diagnostics[0]
        raise UsageError(replace(found, help=f"{found.help}; {shown}" if found.help else shown)) from None


def _show_past(pipeline: Path, address: InspectAddress) -> None:
    """Serve the page of the last run."""
    from millstream.cli.pipelines import load_or_fail
    from millstream.engine.offline.access import CheckpointPlace, open_checkpoint
    from millstream.inspector.attendance import shown
    from millstream.inspector.past import last_run

    topology, stop = load_or_fail(pipeline, None, {}, warn=False), threading.Event()
    place = CheckpointPlace.of(topology)
    with open_checkpoint(place):  # refused while a run elsewhere uses it
        pass
    with open_checkpoint(place, held=False) as found, shown(last_run(topology, found.checkpoint), address, os.environ) as link:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        print(link, flush=True)
        narrate(f"`{topology.name}` does not run; the page shows its last run until Ctrl-C")
        stop.wait()
