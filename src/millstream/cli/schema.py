"""`millstream schema`: the JSON Schema of pipeline files, for editors."""

from __future__ import annotations

import json
from pathlib import Path

from millstream.cli.pipelines import PluginFiles
from millstream.registry import Registry


def schema(plugin: PluginFiles = None) -> None:
    """Print the JSON Schema of pipeline files, with the installed plugins and those of `--plugin`."""
    from millstream.spec.json_schema import pipeline_schema

    print(json.dumps(pipeline_schema(Registry.installed().with_files(plugin or [], Path.cwd())), indent=2))
