"""The options of a run and the engine protocol, for every way to start a run."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from millstream.clients.storage import is_local
from millstream.observe.facts import Snapshot
from millstream.observe.gate import Gate
from millstream.observe.report import Report
from millstream.plan.checkpoint_path import FOLDER, default_checkpoint
from millstream.plan.topology import Topology

_FLAG = re.compile(r"`--(again|reset|redeliver|accept-change|accept-replay|accept-target)(?: ([^`]+))?`")


@dataclass(frozen=True, slots=True)
class InspectAddress:
    """Where a run shows its page."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any free one."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class RunOptions:
    """The options of a run besides its plan."""

    reset: tuple[str, ...] = ()
    """Queries to start anew."""
    again: bool = False
    """Repeat queries that reached the end of their bounded input."""
    accept_change: bool = False
    """Finish a half-done epoch with a plan that may differ from its own."""
    redeliver: bool = False
    """Repeat the epochs that a target lacks, for that target."""
    accept_target: bool = False
    """Continue although a target lacks epochs."""
    accept_replay: bool = False
    """Finish a half-done epoch although its rows may have changed."""
    watch: Callable[[Snapshot], None] | None = None
    """Called several times a second while the pipeline runs."""
    tell: Callable[[str], None] = lambda _: None
    """Called with a sentence when something takes time before the run begins, such as fetching jars."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set it to stop after the running epoch."""
    gate: Gate = field(default_factory=Gate)
    """Close it to keep epochs from beginning."""
    inspect: InspectAddress | None = None
    """Show the run as a web page at this address."""
    log_format: Literal["text", "json"] = "text"
    """How the JVM writes its log."""
    keeps_spark: bool = field(default=False, kw_only=True)
    """Leave Spark running for the next run of this process that asks for the same."""
    private: bool = field(default=False, kw_only=True)
    """Nobody else learns of the run: sources are not told what was committed, and other processes do not find it."""
    checked: bool = field(default=False, kw_only=True)
    """Whether the plan was checked already, as the loader of pipeline files does."""
    flags: bool = field(default=False, kw_only=True)
    """Whether the run was started on the command line, so that messages name its flags."""

    def reword(self, text: str) -> str:
        """A text that names flags, adapted to the caller: Python has options instead of flags."""
        return text if self.flags else _FLAG.sub(_option, text)


def _option(flag: re.Match[str]) -> str:
    value = f'("{flag[2] or "QUERY"}",)' if flag[1] == "reset" else "True"
    return f"`execute(RunOptions({flag[1].replace('-', '_')}={value}))`"


class Engine(Protocol):
    """Runs plans."""

    def run(self, topology: Topology, options: RunOptions) -> Report: ...


def checkpoint_of(topology: Topology) -> str:
    """The path of a pipeline's checkpoint: from its settings, else next to its file, independent of the working directory."""
    return topology.settings.checkpoint or default_checkpoint(topology)


def log_folder(topology: Topology) -> Path:
    """Where the JVM's log of a run is."""
    url = checkpoint_of(topology)
    base = Path(url.removeprefix("file://")) if is_local(url) else topology.directory / FOLDER / topology.name
    return base / "logs"
