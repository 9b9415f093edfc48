"""How a run is told while it goes on: a live view for a person at a terminal, lines for everybody else; and how it is stopped."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from millstream.cli.events import EventLog, LogFormat, LogLevel
from millstream.cli.output import Format
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from millstream.cli.live import Live, Screen
    from millstream.plan.topology import Topology


@dataclass(frozen=True, slots=True)
class Telling:
    """What the command line says about reports and events."""

    format: Format
    log_format: LogFormat | None
    level: LogLevel
    quiet: bool

    @property
    def summarises(self) -> bool:
        return self.log_format is None and self.format is Format.text and not self.quiet

    @property
    def is_live(self) -> bool:
        return self.log_format is None and not self.quiet and sys.stderr.isatty()

    def lines(self, pipeline: str) -> EventLog | None:
        """Where mistakes are lines, too: with `--log-format json`."""
        return EventLog(pipeline, LogFormat.json, self.level) if self.log_format is LogFormat.json else None

    def view(self, topology: Topology, screen: Screen | None = None) -> Live | EventLog:
        if self.is_live:
            from millstream.cli.live import Live

            return Live(topology, screen)
        return EventLog(topology.name, self.log_format or LogFormat.text, self.level)

    def free_stdout(self) -> AbstractContextManager[Any]:
        """With `--format json`, stdout is for reports alone."""
        return redirect_stdout(sys.stderr) if self.format is Format.json else nullcontext()

    def told(self, error: MillstreamError, lines: EventLog | None) -> Exception:
        """What ends the command: the error, for whoever shows errors; or, when it has been written as lines, its exit code."""
        if lines is None:
            return error
        lines.tell(error.diagnostics)
        return typer.Exit(error.exit_code)


class Signals:
    """The first signal asks for a stop, the second one ends the process."""

    def __init__(self, views: Sequence[Live | EventLog]) -> None:
        self.number, self._views = 0, views
        self.on_first: Callable[[], object] = lambda: None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            for view in self._views:
                view.close()
                view.say("stopped now; an epoch that was under way is repeated at the next start")
            os._exit(128 + number)
        self.number = number
        self.on_first()
        for view in self._views:
            when = "after the running epoch" if view.running else "as soon as Spark has started"
            view.say(f"stopping {when} (again: stop now)")


def catch_signals(views: Sequence[Live | EventLog]) -> Signals:
    received = Signals(views)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, received)
    return received
