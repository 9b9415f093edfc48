"""`millstream run`: run a pipeline, show it while it runs, say what happened."""

from __future__ import annotations

import gc
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.cli.completion import pipeline_files
from millstream.cli.events import LogFormat, LogLevel
from millstream.cli.folders import find_pipelines
from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile, SettingFlags, load_or_fail, setting_flags
from millstream.cli.telling import Telling, catch_signals
from millstream.errors import MillstreamError, SpecError

if TYPE_CHECKING:
    from millstream.observe.report import Report
    from millstream.plan.run_options import RunOptions


def run(
    pipelines: Annotated[
        list[Path],
        typer.Argument(
            help="The pipeline's YAML file. Several, or a folder, share one Spark.", show_default=False, autocompletion=pipeline_files
        ),
    ],
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
    """Run a pipeline. Ctrl-C stops it after the running epoch; twice stops it now.

    Several pipelines run side by side in one Spark. One that fails leaves the others alone; the exit code is that of the worst.
    """
    from millstream.plan.run_options import RunOptions

    gc.enable()
    found = find_pipelines(pipelines)
    if found.problems:
        raise SpecError(found.problems)
    flags = setting_flags(set_, checkpoint=checkpoint, master=master, profile=profile) | _trigger_flags(trigger)
    wanted = RunOptions(
        reset=tuple(reset or ()),
        again=again,
        accept_change=accept_change,
        redeliver=redeliver,
        accept_target=accept_target,
        accept_replay=accept_replay,
        checked=True,
        flags=True,
    )
    telling = Telling(format, log_format, LogLevel.error if quiet else log_level, quiet)
    if len(found.files) > 1:
        from millstream.cli.run_several import run_several

        run_several(found, config, flags, wanted, telling)
    else:
        _run_one(found.files[0], config, flags, wanted, telling)


def _run_one(pipeline: Path, config: Path | None, flags: dict[str, str], wanted: RunOptions, telling: Telling) -> None:
    from millstream.cli.summary import summary
    from millstream.registry import engine

    lines = telling.lines(pipeline.stem)
    try:
        topology = load_or_fail(pipeline, config, flags, tell=lines.tell if lines else show)
    except MillstreamError as error:
        raise telling.told(error, lines) from None
    view = telling.view(topology)
    stop, received = threading.Event(), catch_signals([view])
    received.on_first = stop.set
    try:
        with view, telling.free_stdout():
            report: Report = engine()().run(topology, replace(wanted, watch=view.update, tell=view.say, stop=stop))
    except MillstreamError as error:
        if lines is None and not telling.quiet:
            view.failed(error.diagnostics)
        raise telling.told(error, lines) from error.__cause__
    if telling.format is Format.json:
        print(json.dumps(report.as_dict()))
    view.ended(report)
    if telling.summarises:
        narrate(summary(topology, report))
    if received.number:
        raise typer.Exit(128 + received.number)


def _trigger_flags(trigger: str | None) -> dict[str, str]:
    if trigger is None:
        return {}
    if trigger[:1].isdigit():
        return {"trigger.type": "interval", "trigger.every": trigger}
    return {"trigger.type": trigger}
