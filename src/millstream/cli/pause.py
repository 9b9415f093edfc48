"""`millstream pause`: an order to a running pipeline."""

from __future__ import annotations

from millstream.cli.output import narrate
from millstream.cli.running import RunName, client_of


def pause(pipeline: RunName) -> None:
    """Let the running epochs of a pipeline end, and begin no other until `millstream resume`."""
    found = client_of(pipeline).order("pause")
    narrate(f"✓ `{found['name']}` is paused")
