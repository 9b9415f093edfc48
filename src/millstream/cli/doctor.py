"""`millstream doctor`: check whether this machine can run pipelines, and say how to fix what is missing."""

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
    warm: Annotated[bool, typer.Option("--warm", help="Create the start-up archive now, so that the next start is fast.")] = False,
) -> None:
    """Check Python, Java, Spark, the machine, the cache, extras and jars."""
    from millstream.jvm.doctor import examine

    if warm:
        _create_archive()
    findings = examine(os.environ)
    ready = all(finding.ok for finding in findings)
    if format is Format.json:
        print(json.dumps({"ok": ready, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _show(findings)
        narrate("✓ ready" if ready else "✗ not ready: follow the advice next to each ✗")
    if not ready:
        raise typer.Exit(78)


def _create_archive() -> None:
    from millstream.jvm.training import make

    narrate("creating the start-up archive; this takes about half a minute …")
    began = time.monotonic()
    made = make(os.environ)
    narrate(f"created {made.path} in {time.monotonic() - began:.0f} s" if made else "another process is creating it now")


def _show(findings: Sequence[Finding]) -> None:
    """Print a table on a terminal; one line for each finding in a pipe."""
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
