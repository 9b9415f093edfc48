"""`millstream graph`: the topology as a drawing."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from millstream.cli.pipelines import ConfigFile, PipelineFile, PluginFiles, load_or_fail, plugin_flags


class Drawing(StrEnum):
    """The kind of drawing."""

    tree = "tree"
    mermaid = "mermaid"


def graph(
    pipeline: PipelineFile,
    config: ConfigFile = None,
    plugin: PluginFiles = None,
    format: Annotated[Drawing | None, typer.Option(help="Default: `tree` on a terminal, `mermaid` in a pipe.", show_default=False)] = None,
) -> None:
    """Draw the nodes of a pipeline."""
    from millstream.plan import diagram

    topology = load_or_fail(pipeline, config, plugin_flags(plugin))
    chosen = format or (Drawing.tree if sys.stdout.isatty() else Drawing.mermaid)
    print(diagram.tree(topology) if chosen is Drawing.tree else diagram.mermaid(topology))
