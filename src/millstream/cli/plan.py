"""`millstream plan`: show what a run would do, and what has changed since the last run."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile, PipelineFile, PluginFiles, SettingFlags, load_or_fail, plugin_flags, setting_flags


def plan(
    pipeline: PipelineFile,
    config: ConfigFile = None,
    set_: SettingFlags = None,
    plugin: PluginFiles = None,
    offline: Annotated[bool, typer.Option(help="Do not start Spark. Columns that only Spark can determine are not shown then.")] = False,
    format: Annotated[Format, typer.Option(help="`json` prints one object on stdout.")] = Format.text,
) -> None:
    """Show the queries, columns and settings of a pipeline, and what has changed since its last run. Starts Spark, unless `--offline`."""
    from millstream.cli.plan_text import document, text
    from millstream.engine.offline.preview import require, view

    topology = load_or_fail(pipeline, config, setting_flags(set_) | plugin_flags(plugin), warn=False)
    if not offline and format is Format.text:
        narrate("analysing the plan with Spark …")
    seen = view(topology, analyse=not offline)
    show(finding for finding in seen.findings if finding.level == "warning")
    if format is Format.json:
        print(json.dumps(document(seen), indent=2))
    else:
        print(text(seen))
    require(seen)
