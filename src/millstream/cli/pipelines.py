"""Options that several commands have, and the function that loads a pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.completion import pipeline_files
from millstream.cli.folders import find_pipelines
from millstream.cli.output import show
from millstream.errors import Diagnostic, SpecError, UsageError

if TYPE_CHECKING:
    from millstream.plan.topology import Topology

PipelineFile = Annotated[Path, typer.Argument(help="The pipeline's YAML file.", show_default=False, autocompletion=pipeline_files)]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", help="The file with connections and settings. Default: millstream.yaml in the pipeline's folder.", show_default=False
    ),
]
SettingFlags = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting, such as `--set restart.limit=3`. Can be repeated.", show_default=False),
]
PluginFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", help="A Python file with plugins, instead of those of `settings.plugins`. Can be repeated.", show_default=False
    ),
]


def plugin_flags(files: list[str] | None) -> dict[str, str]:
    """`--plugin my_sink.py` as a setting; the path starts at the working directory."""
    paths = [str(Path(each).absolute()) if each.endswith(".py") else each for each in files or []]
    return {"plugins": ",".join(paths)} if paths else {}


def load_or_fail(
    path: Path,
    config: Path | None,
    flags: Mapping[str, str],
    warn: bool = True,
    show_warnings: Callable[[Iterable[Diagnostic]], None] = show,
) -> Topology:
    """The topology of a pipeline file, or an exception with all errors."""
    from millstream.spec.loader import load

    if path.is_dir():
        raise SpecError(_folder_given(path))
    loaded = load(path, environ=os.environ, config=config, flags=flags)
    if warn and not loaded.errors:
        show_warnings(loaded.warnings)
    return loaded.require()


def _folder_given(folder: Path) -> Diagnostic:
    files = find_pipelines([folder]).files
    example = f", such as `{files[0]}`; `millstream check {folder}` checks all pipelines in the folder" if files else ""
    return Diagnostic("MS001", f"`{folder}` is a folder, not a pipeline file", help=f"name a pipeline file{example}")


def setting_flags(pairs: list[str] | None, **named: str | None) -> dict[str, str]:
    """The settings of `--set a.b=c` and of options such as `--master`."""
    found = {key.replace("__", "."): value for key, value in named.items() if value is not None}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(Diagnostic("MS008", f"`--set {pair}` is not `--set NAME=VALUE`", help="for example: `--set master=local[2]`"))
        found[key] = value
    return found
