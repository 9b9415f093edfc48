"""`millstream table`: show and edit the rows of dynamic tables, also while pipelines run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, PipelineFile, SettingFlags, load_or_fail, setting_flags

table = typer.Typer(help="Show and edit the rows of dynamic tables, also while pipelines run.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="TABLE", help="The node's name in the pipeline.", show_default=False)]
Keys = Annotated[list[str], typer.Argument(metavar="KEY…", help="Keys.", show_default=False)]
AsFormat = Annotated[Format, typer.Option(help="`json` prints one object per row. This is the default in a pipe.")]


@table.callback()
def _group() -> None:
    """Group the commands for dynamic tables."""


@table.command("list")
def list_(
    pipeline: PipelineFile,
    name: Name,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number of rows.")] = 100,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    format: AsFormat = Format.text,
) -> None:
    """Show the first rows of a table."""
    from millstream.lookups.edits import open_table

    with open_table(load_or_fail(pipeline, config, setting_flags(set_), warn=False), name) as edited:
        rows, more = edited.first(limit)
    _show(rows, format)
    narrate(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}" + (f", and more (--limit {limit})" if more else ""))


@table.command()
def get(
    pipeline: PipelineFile,
    name: Name,
    keys: Keys,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    format: AsFormat = Format.text,
) -> None:
    """Show the rows with these keys. The exit code is 1 when a key has no row."""
    from millstream.lookups.edits import open_table

    with open_table(load_or_fail(pipeline, config, setting_flags(set_), warn=False), name) as edited:
        rows = edited.get(keys)
    _show(rows, format)
    if len(rows) < len(set(keys)):
        narrate(f"{len(set(keys)) - len(rows)} of {len(set(keys))} keys have no row")
        raise typer.Exit(1)


@table.command()
def put(
    pipeline: PipelineFile,
    name: Name,
    key: Annotated[str, typer.Argument(help="The key.", show_default=False)],
    values: Annotated[list[str] | None, typer.Argument(metavar="[COLUMN=VALUE]…", help="The other columns.", show_default=False)] = None,
    config: ConfigFile = None,
    set_: SettingFlags = None,
) -> None:
    """Write one row. It replaces the row with the same key. Columns without a value are null."""
    from millstream.lookups.edits import open_table

    with open_table(load_or_fail(pipeline, config, setting_flags(set_), warn=False), name) as edited:
        edited.put(key, values or [])
    narrate(f"✓ {name}: {key}")


@table.command()
def delete(pipeline: PipelineFile, name: Name, keys: Keys, config: ConfigFile = None, set_: SettingFlags = None) -> None:
    """Delete the rows with these keys."""
    from millstream.lookups.edits import open_table

    with open_table(load_or_fail(pipeline, config, setting_flags(set_), warn=False), name) as edited:
        deleted = edited.delete(keys)
    narrate(f"✓ {name}: {deleted} {'row' if deleted == 1 else 'rows'} deleted")


@table.command()
def load(
    pipeline: PipelineFile,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="A CSV file whose first line names the columns.", show_default=False)],
    config: ConfigFile = None,
    set_: SettingFlags = None,
) -> None:
    """Write all rows of a CSV file. They replace rows with the same keys. An empty field is null."""
    from millstream.lookups.edits import open_table

    with open_table(load_or_fail(pipeline, config, setting_flags(set_), warn=False), name) as edited:
        count = edited.load(file)
    narrate(f"✓ {name}: {count:,} {'row' if count == 1 else 'rows'} written")


def _show(rows: list[dict[str, Any]], format: Format) -> None:
    if format is Format.json or not sys.stdout.isatty():
        for row in rows:
            print(json.dumps(row, default=str, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table(*(rows[0] if rows else ()), box=None, pad_edge=False, header_style="bold")
    for row in rows:
        shown.add_row(*("" if value is None else str(value) for value in row.values()))
    Console().print(shown)
