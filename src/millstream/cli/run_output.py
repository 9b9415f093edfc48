"""The output of a run: a live view on a terminal, an event log elsewhere, and reports on stdout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from millstream.cli.events import EventLog, LogFormat, LogLevel
from millstream.cli.output import Format
from millstream.errors import Diagnostic, MillstreamError

if TYPE_CHECKING:
    from millstream.cli.live import Live, Screen
    from millstream.plan.topology import Topology


def failure_document(pipeline: str, found: Sequence[Diagnostic]) -> dict[str, Any]:
    """The JSON object of a failed pipeline, instead of a report."""
    return {"pipeline": pipeline, "state": "failed", "errors": [each.as_dict() for each in found]}


@dataclass(frozen=True, slots=True)
class RunOutput:
    """The options that decide what a run prints."""

    format: Format
    log_format: LogFormat | None
    level: LogLevel
    quiet: bool

    @property
    def has_summary(self) -> bool:
        return self.log_format is None and self.format is Format.text and not self.quiet

    @property
    def is_live(self) -> bool:
        return self.log_format is None and not self.quiet and sys.stderr.isatty()

    def error_log(self, pipeline: str) -> EventLog | None:
        """The log for errors and warnings: with `--log-format json` they are events."""
        return EventLog(pipeline, LogFormat.json, self.level) if self.log_format is LogFormat.json else None

    def view_of(self, topology: Topology, screen: Screen | None = None) -> Live | EventLog:
        if self.is_live:
            from millstream.cli.live import Live

            return Live(topology, screen)
        return EventLog(topology.name, self.log_format or LogFormat.text, self.level)

    def reserve_stdout(self) -> AbstractContextManager[Any]:
        """With `--format json`, send everything except reports to stderr."""
        return redirect_stdout(sys.stderr) if self.format is Format.json else nullcontext()

    def exception_for(self, error: MillstreamError, log: EventLog | None) -> Exception:
        """The exception that ends the command: the error itself or, when the log has it, only its exit code."""
        if log is None:
            return error
        log.add_diagnostics(error.diagnostics)
        return typer.Exit(error.exit_code)
