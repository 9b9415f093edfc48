"""`millstream stop`: an order to a running pipeline."""

from __future__ import annotations

from millstream.cli.output import narrate
from millstream.cli.running import RunName, client_of


def stop(pipeline: RunName) -> None:
    """Stop a running pipeline after its running epoch. It continues there at its next start."""
    found = client_of(pipeline).order("stop")
    narrate(f"✓ `{found['name']}` stops after its running epoch")
