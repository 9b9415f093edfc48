"""`millstream doctor`: is this machine ready, and if not, what to do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.output import Format, narrate

if TYPE_CHECKING:
    from millstream.jvm.doctor import Finding


def doctor(
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
    warm: Annotated[bool, typer.Option("--warm", help="Make the start-up archive now, so that the next start is quick.")] = False,
) -> None:
    """Look at Python, Java, Spark, the machine, the cache, extras and jars."""
    from millstream.jvm.doctor import examine

    if warm:
        _warm()
    findings = examine(os.environ)
    ready = all(finding.ok for finding in findings)
    if format is Format.json:
        print(json.dumps({"ok": ready, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _show(findings)
        narrate("✓ ready" if ready else "✗ not ready: do what stands beside each ✗")
    if not ready:
        raise typer.Exit(78)


def _warm() -> None:
    from millstream.jvm.training import make

    narrate("making the start-up archive, about half a minute …")
    began = time.monotonic()
    made = make(os.environ)
    narrate(f"made {made.path} in {time.monotonic() - began:.0f} s" if made else "somebody else is making it at this moment")


def _show(findings: Sequence[Finding]) -> None:
    """A table on a terminal; one plain line for each finding in a pipe."""
    if not sys.stdout.isatty():
        for finding in findings:
            print("\t".join(filter(None, ("ok" if finding.ok else "missing", finding.name, finding.value, finding.advice))))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        mark = Text("✓", "green") if finding.ok else Text("✗", "bold red")
        table.add_row(mark, Text(finding.name, "bold"), Text(finding.value), Text(finding.advice, "yellow"))
    Console().print(table)
