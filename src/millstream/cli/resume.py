"""`millstream resume`: an order to a running pipeline."""

from __future__ import annotations

from millstream.cli.output import narrate
from millstream.cli.running import RunName, client_of


def resume(pipeline: RunName) -> None:
    """Let a paused pipeline continue."""
    found = client_of(pipeline).order("resume")
    narrate(f"✓ `{found['name']}` continues")
