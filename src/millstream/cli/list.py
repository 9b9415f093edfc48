"""`millstream list`: the pipelines that run on this machine."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
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

    found = [_line(each) for each in running(os.environ)]
    if format is Format.json:
        print(json.dumps(found, indent=2))
    elif not found:
        narrate("no pipeline runs here under your user")
    elif sys.stdout.isatty():
        _table(found)
    else:
        print("\n".join("\t".join("" if value is None else str(value) for value in line.values()) for line in found))


def _line(run: Registration) -> dict[str, Any]:
    """One run."""
    from millstream.inspector.client import Client

    status, rate = "does not answer", None
    with suppress(MillstreamError):
        told = Client(run).get("/api/status")
        status, rate = told["health"]["status"], told["rows_per_second"]
    return {
        "name": run.name,
        "process": run.process,
        "status": status,
        "since": datetime.fromtimestamp(run.began, UTC).isoformat(timespec="seconds"),
        "rows_per_second": rate,
        "checkpoint": run.checkpoint,
        "page": run.url,
    }


def _table(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "process", "status", "since", "rows/s", "checkpoint", "page", box=None, pad_edge=False, header_style="dim")
    for line in found:
        rate = "" if line["rows_per_second"] is None else f"{line['rows_per_second']:,}"
        values = (line["name"], line["process"], line["status"], line["since"], rate, line["checkpoint"], line["page"] or "-")
        table.add_row(*map(str, values))
    Console().print(table)
