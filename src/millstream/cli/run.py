"""`millstream run`: run a pipeline, show it while it runs, say what happened."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.output import Format, narrate
from millstream.cli.pipelines import ConfigFile, PipelineFile, SettingFlags, load_or_fail, setting_flags

if TYPE_CHECKING:
    from millstream.observe.report import Report


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
    format: Annotated[Format, typer.Option(help="`json` prints the report on stdout.")] = Format.text,
) -> None:
    """Run a pipeline. Ctrl-C stops it after the running epoch; twice stops it now."""
    from millstream.cli.live import Live
    from millstream.cli.summary import summary
    from millstream.plan.running import RunOptions
    from millstream.registry import engine

    gc.enable()
    flags = setting_flags(set_, checkpoint=checkpoint, master=master, profile=profile) | _trigger_flags(trigger)
    topology = load_or_fail(pipeline, config, flags)
    stop, received = threading.Event(), _catch_signals()
    received.on_first = stop.set
    with Live(topology) as live:
        options = RunOptions(tuple(reset or ()), again, accept_change, live.update, narrate, stop)
        report: Report = engine()().run(topology, options)
    if format is Format.json:
        print(json.dumps(report.as_dict()))
    else:
        narrate(summary(topology, report))
    if received.number:
        raise typer.Exit(128 + received.number)


class _Signals:
    """The first signal asks for a stop, the second one ends the process."""

    def __init__(self) -> None:
        self.number = 0
        self.on_first: Callable[[], object] = lambda: None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            os._exit(128 + number)
        self.number = number
        print("\nstopping after the running epoch (again: stop now)", file=sys.stderr)
        self.on_first()


def _catch_signals() -> _Signals:
    received = _Signals()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, received)
    return received


def _trigger_flags(trigger: str | None) -> dict[str, str]:
    if trigger is None:
        return {}
    if trigger[:1].isdigit():
        return {"trigger.type": "interval", "trigger.every": trigger}
    return {"trigger.type": trigger}
