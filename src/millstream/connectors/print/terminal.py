"""Formats rows: a table with a heading, or lines."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millstream.plan.components import Epoch

if TYPE_CHECKING:
    from rich.text import Text


def show(lines: Sequence[str], rows: int, limit: int, epoch: Epoch) -> None:
    """Write the rows of one epoch. The terminal is looked up now: it may have been replaced since the program began."""
    if not sys.stdout.isatty():
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        return
    _table(lines[:limit], rows, epoch)


def _table(lines: Sequence[str], rows: int, epoch: Epoch) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    records = [json.loads(line) for line in lines]
    more = f", {len(records)} shown" if len(records) < rows else ""
    table = Table(title=f"{epoch.sink} · epoch {epoch.number} · {rows:,} row{'s' if rows != 1 else ''}{more}", title_justify="left")
    for name in records[0]:
        numeric = all(isinstance(record[name], int | float) and not isinstance(record[name], bool) for record in records)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for record in records:
        table.add_row(*(_cell(value) for value in record.values()))
    # rendered separately and written as text, so that a live display around it can move
    canvas = Console(file=io.StringIO(), force_terminal=True, width=shutil.get_terminal_size().columns)
    canvas.print(table)
    sys.stdout.write(canvas.file.getvalue())  # type: ignore[attr-defined]  # the StringIO of two lines above
    sys.stdout.flush()


def _cell(value: object) -> Text:
    from rich.text import Text

    if value is None:
        return Text("null", style="dim")
    return Text(json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value))
