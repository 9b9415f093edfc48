"""`millstream inspect`: the page of a running pipeline."""

from __future__ import annotations

from millstream.cli.running import RunName, client_of


def inspect(pipeline: RunName) -> None:
    """Print the link to the page of a running pipeline, and open the page if it has none yet."""
    print(client_of(pipeline).order("page")["url"])
