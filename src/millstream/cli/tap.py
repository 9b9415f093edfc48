"""`millstream tap`: rows of a node of a running pipeline."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.rows import as_lines
from millstream.cli.running import RunName, client_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.inspector.client import Client


def tap(
    pipeline: RunName,
    node: Annotated[str, typer.Argument(help="The node whose rows are shown; for a sink those that it receives.", show_default=False)],
    limit: Annotated[int | None, typer.Option(help="Exit after this many rows.", min=1, show_default=False)] = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object per row. Default in a pipe.")] = Format.text,
) -> None:
    """Show rows of a node of a running pipeline: some rows of about one epoch per second. Ctrl-C ends it; the pipeline goes on."""
    client, shown = client_of(pipeline), 0
    sampled = client.post("/api/watch", node=node)["node"]
    as_json = format is Format.json or not sys.stdout.isatty()
    for event in _samples(client, sampled):
        if not as_json:
            narrate(f"epoch {event['epoch']} of query `{event['query']}`:")
        rows = event["rows"][: None if limit is None else limit - shown]
        print("\n".join(rows) if as_json else as_lines([json.loads(row) for row in rows]), flush=True)
        shown += len(rows)
        if limit is not None and shown >= limit:
            return
    narrate("the run has ended")


def _samples(client: Client, node: str) -> Iterator[Any]:
    """The samples of a node, until the run ends. The wish is repeated, as it lasts for some seconds."""
    was_paused = False
    for name, data in client.events():
        if name == "status":
            client.post("/api/watch", node=node)
            if data["paused"] and not was_paused:
                narrate(f"`{data['name']}` is paused: no rows come until `millstream resume`")
            was_paused = data["paused"]
        elif name == "fact" and data["event"] == "rows_sampled" and data["node"] == node and data.get("rows"):
            yield data
