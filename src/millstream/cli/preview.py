"""`millstream preview`: the first rows of a node, from its real sources."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, PipelineFile, PluginFiles, SettingFlags, load_or_fail, plugin_flags, setting_flags
from millstream.cli.rows import as_lines, plain

if TYPE_CHECKING:
    from millstream.engine.offline.first_rows import FirstRows


def preview(
    pipeline: PipelineFile,
    node: Annotated[str | None, typer.Argument(help="Default: the node that the first sink reads.", show_default=False)] = None,
    rows: Annotated[int, typer.Option(help="How many rows.", min=1)] = 20,
    wait: Annotated[float, typer.Option(help="Seconds to wait for them, from the start of Spark.", min=0)] = 30.0,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    plugin: PluginFiles = None,
    format: Annotated[Format, typer.Option(help="`json` prints one object per row. Default in a pipe.")] = Format.text,
) -> None:
    """Show the first rows of a node. Real sources are read, and nothing is written: no sink, no checkpoint, no offset."""
    from millstream.engine.offline.first_rows import first_rows
    from millstream.registry import engine

    topology = load_or_fail(pipeline, config, setting_flags(set_) | plugin_flags(plugin))
    found = first_rows(engine()(), topology, node, rows, wait, narrate)
    _print(found, as_json=format is Format.json or not sys.stdout.isatty())
    count = found.rows.num_rows
    told = "all there are" if found.is_all else "the first ones" if count == rows else f"those that came in {wait:g} s"
    narrate(f"{count} {'row' if count == 1 else 'rows'} of `{found.node}`: {told}; nothing was written")


def _print(found: FirstRows, as_json: bool) -> None:
    rows: list[dict[str, Any]] = found.rows.to_pylist()
    if not rows:
        return
    print("\n".join(json.dumps(row, default=plain, ensure_ascii=False) for row in rows) if as_json else as_lines(rows))
