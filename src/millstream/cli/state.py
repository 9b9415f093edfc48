"""`millstream state`: the state of a stopped pipeline, row by row."""

from __future__ import annotations

import base64
import json
import sys
from typing import Annotated, Any

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, PipelineFile, SettingFlags, load_or_fail, setting_flags

state = typer.Typer(help="Show the state of stopped pipelines.", no_args_is_help=True)


@state.callback()
def _group() -> None:
    """Group the commands for state."""


@state.command()
def show(
    pipeline: PipelineFile,
    node: Annotated[str, typer.Argument(help="A node with state.", show_default=False)],
    key: Annotated[
        list[str] | None,
        typer.Option(help="Show only this key: VALUE or COLUMN=VALUE, repeated for each column of the key.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of rows.")] = 20,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object per row. This is the default in a pipe.")] = Format.text,
) -> None:
    """Show the state of a node after the last committed epoch: a table on a terminal, JSON lines in a pipe."""
    from millstream.engine.offline.state_view import view

    topology = load_or_fail(pipeline, config, setting_flags(set_), warn=False)
    rows, more = view(topology, node, tuple(key or ()), limit, lambda: narrate("reading the state with Spark …"))
    if format is Format.json or not sys.stdout.isatty():
        for row in rows:
            print(json.dumps(row, default=_plain, ensure_ascii=False))
    else:
        _table(rows)
    narrate(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}" + (f", and more (--limit {limit})" if more else ""))


def _table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    table = Table(*names, box=None, pad_edge=False, header_style="bold")
    for row in flat:
        table.add_row(*(_text(row.get(name)) for name in names))
    Console().print(table)


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of key and value in one row. A name that both have gets the prefix `key.` or `value.`."""
    flat: dict[str, Any] = {}
    for part, value in row.items():
        fields = value if isinstance(value, dict) and part in {"key", "value"} else {part: value}
        flat |= {(f"{part}.{name}" if name in flat else name): inner for name, inner in fields.items()}
    return flat


def _text(value: Any) -> str:
    """The text of a cell. Bytes are shown by their size: the state of aggregates that collect rows is in an internal format of Spark."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, dict | list):
        return json.dumps(value, default=_plain, ensure_ascii=False)
    return "" if value is None else str(value)


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
