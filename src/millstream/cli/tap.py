"""`millstream tap`: rows of a node of a running pipeline."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import narrate
from millstream.cli.rows import as_lines
from millstream.cli.running import RunName, client_of
from millstream.errors import Diagnostic, RunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.inspector.client import Client

_SILENCE = 15.0
"""Seconds without rows after which the terminal says why."""
_NONE_PASS, _NONE_CAME = "none pass the filter in the epochs that were searched", "its last epochs had none"


class TapFormat(StrEnum):
    """How rows are printed."""

    table = "table"
    json = "json"


def tap(
    pipeline: RunName,
    node: Annotated[str, typer.Argument(help="The node whose rows are shown; for a sink those that it receives.", show_default=False)],
    where: Annotated[str, typer.Option(metavar="EXPR", help="Only rows for which this Spark SQL expression is true.")] = "",
    limit: Annotated[int | None, typer.Option(help="Exit after this many rows.", min=1, show_default=False)] = None,
    format: Annotated[
        TapFormat | None, typer.Option(help="`json` prints one object per row. Default in a pipe.", show_default=False)
    ] = None,
) -> None:
    """Show rows of a node of a running pipeline: some rows of one epoch per second at most. Ctrl-C ends it; the pipeline goes on.

    `--where` is applied before rows are taken, so that a rare row is found.
    """
    client, shown, told_again = client_of(pipeline), 0, False
    sampled = client.post("/api/watch", node=node, where=where, begins=True)["node"]
    as_json = (format or (TapFormat.table if sys.stdout.isatty() else TapFormat.json)) is TapFormat.json
    for event in _samples(client, sampled, where.strip()):
        if event["read_again"] and not told_again:
            narrate(f"rows of `{sampled}` are read again from the offsets of the epoch: nothing holds them")
            told_again = True
        if not as_json:
            narrate(f"epoch {event['epoch']} of query `{event['query']}`:")
        rows = event["rows"][: None if limit is None else limit - shown]
        print("\n".join(rows) if as_json else as_lines([json.loads(row) for row in rows]), flush=True)
        shown += len(rows)
        if limit is not None and shown >= limit:
            return
    narrate("the run has ended")


def _samples(client: Client, node: str, where: str) -> Iterator[Any]:
    """The samples of a node, until the run ends. The wish is repeated, as it lasts for some seconds."""
    was_paused, told_at = False, time.monotonic()
    for name, data in client.events():
        if name == "status":
            if time.monotonic() - told_at > _SILENCE and not data["paused"]:
                told_at = time.monotonic()
                narrate(f"no rows of `{node}` yet: {_NONE_PASS if where else _NONE_CAME}")
            client.post("/api/watch", node=node, where=where)
            if data["paused"] and not was_paused:
                narrate(f"`{data['name']}` is paused: no rows come until `millstream resume`")
            was_paused = data["paused"]
        elif name == "fact" and data.get("node") == node and data.get("where", "") == where:
            if data["event"] == "rows_refused":
                raise RunError(Diagnostic(data["code"], data["message"], detail=data.get("detail", ""), help=data.get("help", "")))
            if data["event"] == "rows_sampled" and data.get("rows"):
                told_at = time.monotonic()
                yield data
