"""`millstream top`: what a running pipeline does, node by node."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.running import RunName, client_of
from millstream.errors import RunError
from millstream.units import duration_of, size_of

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

_COLUMNS = ("rows_in", "rows_out", "rejected", "late", "waiting")


def top(
    pipeline: RunName,
    once: Annotated[bool, typer.Option("--once", help="Print one table and exit. So does a pipe.")] = False,
    every: Annotated[float, typer.Option(help="Seconds between two updates.", min=0.2)] = 1.0,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
) -> None:
    """Show rates, lag, watermarks and state of a running pipeline. Ctrl-C ends it; the pipeline goes on."""
    from rich.console import Console
    from rich.live import Live

    client = client_of(pipeline)
    status = client.get("/api/status")
    if format is Format.json:
        print(json.dumps(status, indent=2))
        return
    if once or not sys.stdout.isatty():
        Console(width=None if sys.stdout.isatty() else 160).print(_view(status))
        return
    with Live(_view(status), screen=True, auto_refresh=False) as display:
        try:
            while True:
                time.sleep(every)
                status = client.get("/api/status")
                display.update(_view(status), refresh=True)
        except RunError:
            has_ended = not Path(client.run.socket).exists()
            if not has_ended:
                raise
    Console().print(_view(status))
    narrate(f"`{status['name']}` has ended; this is what was last known of it")


def _view(status: dict[str, Any]) -> Group:
    from rich.console import Group
    from rich.text import Text

    queries = [_query(name, facts) for name, facts in status["queries"].items()]
    return Group(Text(_title(status), style="bold"), _table(status), Text("\n".join(queries)))


def _table(status: dict[str, Any]) -> Table:
    from rich.table import Table

    nodes = status["nodes"]
    shown = [name for name in _COLUMNS if any(facts.get(name) for facts in nodes.values()) or name.startswith("rows")]
    headings = ["node", "kind", *(name.replace("_", " ") for name in shown), "rows/s", "state"]
    table = Table(*headings, box=None, pad_edge=False, header_style="dim")
    for name, facts in nodes.items():
        counts = ["" if facts.get(each) is None else f"{facts[each]:,}" for each in shown]
        state = facts.get("state")
        kept = f"{state['rows']:,} rows, {size_of(state['memory_bytes'])}" if state else ""
        table.add_row(name, facts["kind"], *counts, f"{facts['rows_per_second']:,.0f}", kept)
    return table


def _title(status: dict[str, Any]) -> str:
    health = status["health"]
    reasons = f": {'; '.join(health['reasons'])}" if health["reasons"] else ""
    return f"{status['name']}  {health['status']}{reasons}  {status['seconds']:,.0f} s"


def _query(name: str, facts: dict[str, Any]) -> str:
    last = f", the last in {facts['last_seconds']:.3f} s" if facts["epochs"] else ""
    parts = [f"query {name}: {facts['state']}, {facts['epochs']:,} epochs{last}"]
    if facts["lag_seconds"] >= 1:
        parts.append(f"rows of this epoch wait for {facts['lag_seconds']:.0f} s")
    if watermark := facts.get("watermark"):
        parts.append(f"watermark {duration_of(watermark['lag_seconds'])} behind")
    if facts["restarts"]:
        parts.append(f"{facts['restarts']} restarts")
    return ", ".join(parts)
