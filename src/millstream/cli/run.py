"""`millstream run`: run a pipeline, show it while it runs, say what happened."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.events import EventLog, LogFormat, LogLevel
from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile, PipelineFile, SettingFlags, load_or_fail, setting_flags
from millstream.errors import MillstreamError

if TYPE_CHECKING:
    from millstream.cli.live import Live
    from millstream.observe.report import Report
    from millstream.plan.topology import Topology


def run(
    pipeline: PipelineFile,
    config: ConfigFile = None,
    checkpoint: Annotated[str | None, typer.Option(help="Where progress is kept.", show_default=False)] = None,
    trigger: Annotated[str | None, typer.Option(help="continuous, available_now, or an interval such as 10s.", show_default=False)] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, such as local[2] or spark://host:7077.", show_default=False)] = None,
    profile: Annotated[str | None, typer.Option(help="auto, short, long or small.", show_default=False)] = None,
    set_: SettingFlags = None,
    reset: Annotated[
        list[str] | None, typer.Option(help="Start this query anew: its sinks receive rows again.", show_default=False)
    ] = None,
    again: Annotated[bool, typer.Option(help="Repeat a job that is done: read its bounded input again, from the start.")] = False,
    accept_change: Annotated[bool, typer.Option(help="Finish a half-done epoch with the changed plan.")] = False,
    redeliver: Annotated[bool, typer.Option(help="Repeat the epochs that a sink's target lacks, for that sink alone.")] = False,
    accept_target: Annotated[bool, typer.Option(help="Go on although a sink's target lacks epochs; the report names them.")] = False,
    accept_replay: Annotated[bool, typer.Option(help="Finish a half-done epoch with the rows as they are now.")] = False,
    format: Annotated[
        Format, typer.Option(help="`json` prints the report on stdout; rows of `print` sinks go to stderr then.")
    ] = Format.text,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="One line per event instead of the live view. Default: text, without a terminal.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="Write only events of this level or above.")] = LogLevel.info,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No live view, no events, no summary: errors only.")] = False,
) -> None:
    """Run a pipeline. Ctrl-C stops it after the running epoch; twice stops it now."""
    from millstream.cli.summary import summary
    from millstream.plan.running import RunOptions
    from millstream.registry import engine

    gc.enable()
    flags = setting_flags(set_, checkpoint=checkpoint, master=master, profile=profile) | _trigger_flags(trigger)
    log_level = LogLevel.error if quiet else log_level
    lines = EventLog(pipeline.stem, LogFormat.json, log_level) if log_format is LogFormat.json else None
    try:
        topology = load_or_fail(pipeline, config, flags, tell=lines.tell if lines else show)
    except MillstreamError as error:
        raise _told(error, lines) from None
    view = _view(topology, log_format, log_level, quiet)
    stop, received = threading.Event(), _catch_signals(view)
    received.on_first = stop.set
    try:
        with view, redirect_stdout(sys.stderr) if format is Format.json else nullcontext():
            options = RunOptions(
                reset=tuple(reset or ()),
                again=again,
                accept_change=accept_change,
                redeliver=redeliver,
                accept_target=accept_target,
                accept_replay=accept_replay,
                watch=view.update,
                tell=view.say,
                stop=stop,
                flags=True,
            )
            report: Report = engine()().run(topology, options)
    except MillstreamError as error:
        if lines is None and not quiet:
            view.failed(error.diagnostics)
        raise _told(error, lines) from error.__cause__
    if format is Format.json:
        print(json.dumps(report.as_dict()))
    view.ended(report)
    if log_format is None and format is Format.text and not quiet:
        narrate(summary(topology, report))
    if received.number:
        raise typer.Exit(128 + received.number)


def _told(error: MillstreamError, lines: EventLog | None) -> Exception:
    """What ends the command: the error, for whoever shows errors; or, when it has been written as lines, its exit code."""
    if lines is None:
        return error
    lines.tell(error.diagnostics)
    return typer.Exit(error.exit_code)


def _view(topology: Topology, format: LogFormat | None, level: LogLevel, quiet: bool) -> Live | EventLog:
    """The live view for a person at a terminal, lines for everybody else."""
    if format is None and not quiet and sys.stderr.isatty():
        from millstream.cli.live import Live

        return Live(topology)
    return EventLog(topology.name, format or LogFormat.text, level)


class _Signals:
    """The first signal asks for a stop, the second one ends the process."""

    def __init__(self, view: Live | EventLog) -> None:
        self.number, self._view = 0, view
        self.on_first: Callable[[], object] = lambda: None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            self._view.close()
            self._view.say("stopped now; an epoch that was under way is repeated at the next start")
            os._exit(128 + number)
        self.number = number
        when = "after the running epoch" if self._view.running else "as soon as Spark has started"
        self.on_first()
        self._view.say(f"stopping {when} (again: stop now)")


def _catch_signals(view: Live | EventLog) -> _Signals:
    received = _Signals(view)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, received)
    return received


def _trigger_flags(trigger: str | None) -> dict[str, str]:
    if trigger is None:
        return {}
    if trigger[:1].isdigit():
        return {"trigger.type": "interval", "trigger.every": trigger}
    return {"trigger.type": trigger}
