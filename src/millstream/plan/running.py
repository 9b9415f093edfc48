"""How the front doors ask for a run, whichever engine does it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from millstream.observe.facts import Snapshot
from millstream.observe.report import Report
from millstream.plan.topology import Topology


@dataclass(frozen=True)
class RunOptions:
    """What a run can be told beside its plan."""

    reset: tuple[str, ...] = ()
    """Queries to start anew."""
    again: bool = False
    """Repeat what has come to the end of its bounded input."""
    accept_change: bool = False
    """Finish a half-done epoch with a plan that may differ from the one it was begun with."""
    watch: Callable[[Snapshot], None] | None = None
    """Called several times a second while the pipeline runs."""
    tell: Callable[[str], None] = lambda _: None
    """Called with a sentence when something takes time before the run begins: jars that are fetched."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set it to stop after the running epoch."""


class Engine(Protocol):
    """Runs plans."""

    def run(self, topology: Topology, options: RunOptions) -> Report: ...


def checkpoint_of(topology: Topology) -> str:
    """Where a pipeline keeps its progress."""
    return topology.settings.checkpoint or f".millstream/{topology.name}"
