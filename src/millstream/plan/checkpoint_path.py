"""The default path of a checkpoint: next to the pipeline's file, so that it does not depend on the working directory.

A checkpoint may also be in the working directory: from a `--checkpoint` flag, from an older version, or because the pipeline was moved. A
second checkpoint next to the file would deliver every row again, so the run is refused. A checkpoint is ignored when it belongs to a
pipeline whose file still exists (`home` in its `pipeline.json`: the file's name).
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
    """The folder next to the pipeline's file; a RunError when the checkpoint is in the working directory instead."""
    chosen, other = Path(os.path.normpath(topology.directory / FOLDER / topology.name)), Path(FOLDER) / topology.name
    if _owner(chosen) is None and chosen.resolve() != other.resolve():
        owner = _owner(other)
        if owner is not None and owner.get("pipeline") == topology.name and not _lives_beside(other, owner.get("home")):
            raise RunError(_wrong_place(topology.name, chosen, other.absolute()))
    return str(chosen)


def home_of(topology: Topology) -> str:
    """The file next to which a checkpoint at the default path is; `.` for a Python program, and empty for another path."""
    if topology.settings.checkpoint is not None:
        return ""
    files = [Path(node.span.file) for node in topology.nodes if node.span is not None]
    return files[0].name if files and files[0].parent.resolve() == topology.directory.resolve() else "."


def _lives_beside(checkpoint: Path, home: object) -> bool:
    """Whether the pipeline that owns a checkpoint is still in its directory."""
    return isinstance(home, str) and bool(home) and (checkpoint.parent.parent / home).exists()


def _owner(checkpoint: Path) -> dict[str, Any] | None:
    """The owner of a checkpoint; None when there is no checkpoint."""
    try:
        found = json.loads((checkpoint / _OWNER).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _wrong_place(name: str, chosen: Path, other: Path) -> Diagnostic:
    message = f"a checkpoint of a pipeline `{name}` is in the working directory, not beside the pipeline's file"
    detail = f"found: {other}\nlooked for: {chosen}\nwithout its progress every row would be delivered again"
    help_ = (
        f"move it: `mkdir -p {chosen.parent} && mv {other} {chosen}`; or continue with it there: `--set checkpoint={other}`; "
        f"if it belongs to another pipeline of that name: `--set checkpoint={chosen}`"
    )
    return Diagnostic("MS148", message, detail=detail, help=help_)
