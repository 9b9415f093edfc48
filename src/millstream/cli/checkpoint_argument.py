"""The argument that names a checkpoint: the file of its pipeline, or its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.pipelines import load_or_fail, setting_flags

if TYPE_CHECKING:
    from millstream.engine.offline.access import CheckpointPlace

Target = Annotated[
    str, typer.Argument(metavar="PIPELINE|CHECKPOINT", help="A pipeline's YAML file, or the folder of a checkpoint.", show_default=False)
]


def place_of(target: str, config: Path | None, set_: list[str] | None) -> CheckpointPlace:
    """The place of the checkpoint that the argument names."""
    from millstream.engine.offline.access import CheckpointPlace

    if "://" in target or Path(target).is_dir():
        return CheckpointPlace(target)
    return CheckpointPlace.of(load_or_fail(Path(target), config, setting_flags(set_), warn=False))
