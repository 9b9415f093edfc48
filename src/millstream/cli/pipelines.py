"""Options that several commands share, and how they load a pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.completion import pipeline_files
from millstream.cli.output import show
from millstream.errors import Diagnostic, UsageError

if TYPE_CHECKING:
    from millstream.plan.topology import Topology

PipelineFile = Annotated[Path, typer.Argument(help="The pipeline's YAML file.", show_default=False, autocompletion=pipeline_files)]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Connections and settings. Default: millstream.yaml beside the pipeline.", show_default=False),
]
SettingFlags = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting, such as `--set restart.limit=3`. Can be repeated.", show_default=False),
]


def load_or_fail(
    path: Path,
    config: Path | None,
    flags: Mapping[str, str],
    warn: bool = True,
    tell: Callable[[Iterable[Diagnostic]], None] = show,
) -> Topology:
    """The plan; all its errors as one exception otherwise."""
    from millstream.spec.loader import load

    loaded = load(path, environ=os.environ, config=config, flags=flags)
    if warn and not loaded.errors:
        tell(loaded.warnings)
    return loaded.require()


def setting_flags(pairs: list[str] | None, **named: str | None) -> dict[str, str]:
    """`--set a.b=c` and the flags that have names of their own."""
    found = {key.replace("__", "."): value for key, value in named.items() if value is not None}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(Diagnostic("MS008", f"`--set {pair}` is not `--set NAME=VALUE`", help="for example: `--set master=local[2]`"))
        found[key] = value
    return found
