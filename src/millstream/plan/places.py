"""The default place of a checkpoint: beside the pipeline's file, so that it is found from every working directory.

A checkpoint may also lie in the working directory: put there by a `--checkpoint` flag, by a version that knew no other place, or by a
pipeline that was moved since. A run that started a second one beside the file would deliver every row again, so it is refused. One that
belongs to a pipeline whose file is still there (`home` in its `pipeline.json`: the file's name) is left alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from millstream.errors import Diagnostic, RunError
from millstream.plan.topology import Topology

FOLDER = ".millstream"
_OWNER = "_millstream/pipeline.json"


def default_checkpoint(topology: Topology) -> str:
    """The folder beside the pipeline's file; a RunError when progress is kept in the working directory instead."""
    chosen, other = Path(os.path.normpath(topology.directory / FOLDER / topology.name)), Path(FOLDER) / topology.name
    if _owner(chosen) is None and chosen.resolve() != other.resolve():
        owner = _owner(other)
        if owner is not None and owner.get("pipeline") == topology.name and not _lives_beside(other, owner.get("home")):
            raise RunError(_misplaced(topology.name, chosen, other.absolute()))
    return str(chosen)


def home_of(topology: Topology) -> str:
    """The file that a checkpoint in the default place lies beside; `.` for a Python program, and nothing for one in another place."""
    if topology.settings.checkpoint is not None:
        return ""
    files = [Path(node.span.file) for node in topology.nodes if node.span is not None]
    return files[0].name if files and files[0].parent.resolve() == topology.directory.resolve() else "."


def _lives_beside(checkpoint: Path, home: object) -> bool:
    """Whether the pipeline that a checkpoint belongs to is still in its directory."""
    return isinstance(home, str) and bool(home) and (checkpoint.parent.parent / home).exists()


def _owner(checkpoint: Path) -> dict[str, Any] | None:
    """Whose progress is kept there; nothing when there is none."""
    try:
        found = json.loads((checkpoint / _OWNER).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _misplaced(name: str, chosen: Path, other: Path) -> Diagnostic:
    message = f"a checkpoint of a pipeline `{name}` is in the working directory, and not beside the pipeline's file"
    detail = f"found: {other}\nlooked for: {chosen}\nwithout its progress every row would be delivered again"
    help_ = (
        f"move it: `mkdir -p {chosen.parent} && mv {other} {chosen}`; or go on with it where it is: `--set checkpoint={other}`; "
        f"if it belongs to another pipeline of that name: `--set checkpoint={chosen}`"
    )
    return Diagnostic("MS148", message, detail=detail, help=help_)
