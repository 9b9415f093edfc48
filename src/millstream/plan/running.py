"""How the front doors ask for a run, whichever engine does it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from millstream.observe.facts import Snapshot
from millstream.observe.report import Report
from millstream.plan.places import default_checkpoint
from millstream.plan.topology import Topology

_FLAG = re.compile(r"`--(again|reset|redeliver|accept-change|accept-replay|accept-target)(?: ([^`]+))?`")


@dataclass(frozen=True)
class RunOptions:
    """What a run can be told beside its plan."""

    reset: tuple[str, ...] = ()
    """Queries to start anew."""
    again: bool = False
    """Repeat what has come to the end of its bounded input."""
    accept_change: bool = False
    """Finish a half-done epoch with a plan that may differ from the one it was begun with."""
    redeliver: bool = False
    """Repeat the epochs that a target lacks, for that target."""
    accept_target: bool = False
    """Go on although a target lacks epochs."""
    accept_replay: bool = False
    """Finish a half-done epoch although its rows may not be what they were."""
    watch: Callable[[Snapshot], None] | None = None
    """Called several times a second while the pipeline runs."""
    tell: Callable[[str], None] = lambda _: None
    """Called with a sentence when something takes time before the run begins: jars that are fetched."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set it to stop after the running epoch."""
    keeps_spark: bool = field(default=False, kw_only=True)
    """Leave Spark running for the next run of this process that asks for the same."""
    flags: bool = field(default=False, kw_only=True)
    """Whether the run was asked for on the command line, so that messages name its flags."""

    def worded(self, text: str) -> str:
        """A text that names flags, in the words of the front door: Python asks for the same with options."""
        return text if self.flags else _FLAG.sub(_option, text)


def _option(flag: re.Match[str]) -> str:
    value = f'("{flag[2] or "QUERY"}",)' if flag[1] == "reset" else "True"
    return f"`execute(RunOptions({flag[1].replace('-', '_')}={value}))`"


class Engine(Protocol):
    """Runs plans."""

    def run(self, topology: Topology, options: RunOptions) -> Report: ...


def checkpoint_of(topology: Topology) -> str:
    """Where a pipeline keeps its progress: as its settings say, else beside its file, from whichever directory it is run."""
    return topology.settings.checkpoint or default_checkpoint(topology)
