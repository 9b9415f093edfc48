"""`load_pipeline`: a YAML file as a plan, for Python programs."""

from __future__ import annotations

import os
from pathlib import Path

from millstream.plan.topology import Topology
from millstream.spec.loader import load


def load_pipeline(path: str | Path, *, config: Path | None = None) -> Topology:
    """The plan of a pipeline file; a SpecError with all its mistakes otherwise."""
    return load(path, environ=os.environ, config=config).require()
