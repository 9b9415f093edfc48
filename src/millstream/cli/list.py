"""`millstream list`: the pipelines that run on this machine."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import Format, narrate
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from millstream.inspector.registration import Registration


def list_(format: Annotated[Format, typer.Option(help="`json` prints one array on stdout.")] = Format.text) -> None:
    """List the pipelines that run on this machine under your user."""
    from millstream.inspector.registration import running

    found = [line for each in running(os.environ) if (line := _line(each)) is not None]
    if format is Format.json:
        print(json.dumps(found, indent=2))
    elif sys.stdout.isatty():
        _table(found)
    else:
        print("\n".join("\t".join(str(value) for value in line.values()) for line in found), end="\n" if found else "")


def _line(run: Registration) -> dict[str, Any] | None:
    """One run; None if it has ended meanwhile."""
    from millstream.inspector.client import Client

    try:
        status = Client(run).get("/api/status")
    except MillstreamError:
        return None
    return {
        "name": run.name,
        "process": run.process,
        "status": status["health"]["status"],
        "since": datetime.fromtimestamp(run.began, UTC).isoformat(timespec="seconds"),
        "rows_per_second": round(sum(query["rows_per_second"] for query in status["queries"].values()), 1),
        "checkpoint": run.checkpoint,
        "page": run.url,
    }


def _table(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not found:
        narrate("no pipeline runs here under your user")
        return
    table = Table("name", "process", "status", "since", "rows/s", "page", box=None, pad_edge=False, header_style="dim")
    for line in found:
        values = (line["name"], line["process"], line["status"], line["since"], f"{line['rows_per_second']:,}", line["page"] or "-")
        table.add_row(*map(str, values))
    Console().print(table)
