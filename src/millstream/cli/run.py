"""`millstream run`: run a pipeline, show its progress, and print a summary or a report."""

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
from millstream.cli.inspect_option import inspect_address
from millstream.cli.output import Format, narrate, show
from millstream.cli.pipelines import ConfigFile, PluginFiles, SettingFlags, load_or_fail, plugin_flags, setting_flags
from millstream.cli.run_output import RunOutput, failure_document
from millstream.cli.signals import catch_signals
from millstream.errors import Diagnostic, MillstreamError, SpecError, UsageError

if TYPE_CHECKING:
    from millstream.observe.report import Report
    from millstream.plan.run_options import RunOptions


def run(
    pipelines: Annotated[
        list[Path],
        typer.Argument(
            help="The pipeline's YAML file. Several files, or those of a folder, share one Spark.",
            show_default=False,
            autocompletion=pipeline_files,
        ),
    ],
    config: ConfigFile = None,
    checkpoint: Annotated[str | None, typer.Option(help="The folder of the checkpoint.", show_default=False)] = None,
    trigger: Annotated[str | None, typer.Option(help="continuous, available_now, or an interval such as 10s.", show_default=False)] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, such as local[2] or spark://host:7077.", show_default=False)] = None,
    profile: Annotated[str | None, typer.Option(help="auto, short, long or small.", show_default=False)] = None,
    set_: SettingFlags = None,
    plugin: PluginFiles = None,
    reset: Annotated[
        list[str] | None, typer.Option(help="Start this query from the beginning: its sinks receive rows again.", show_default=False)
    ] = None,
    again: Annotated[bool, typer.Option(help="Repeat a job that is done: read its bounded inputs again from the start.")] = False,
    accept_change: Annotated[bool, typer.Option(help="Finish a half-done epoch with the changed plan.")] = False,
    redeliver: Annotated[bool, typer.Option(help="Repeat the epochs that the target of a sink lacks, for that sink only.")] = False,
    accept_target: Annotated[
        bool, typer.Option(help="Continue although the target of a sink lacks epochs. The report names them.")
    ] = False,
    accept_replay: Annotated[bool, typer.Option(help="Finish a half-done epoch with the rows that its inputs have now.")] = False,
    format: Annotated[
        Format, typer.Option(help="`json` prints the report on stdout, and the rows of `print` sinks on stderr.")
    ] = Format.text,
    log_format: Annotated[
        LogFormat | None, typer.Option(help="Print one line per event instead of the live view. Default without a terminal: text.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="Print only events of this level or a higher one.")] = LogLevel.info,
    inspect: Annotated[
        str | None, typer.Option(metavar="[HOST:PORT]", help="Show the run as a web page. Default: a free port of this machine.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only: no live view, no events, no summary.")] = False,
) -> None:
    """Run a pipeline. Ctrl-C stops it after the running epoch; a second Ctrl-C stops it now.

    Several pipelines run at the same time in one Spark. If one fails, the others continue. The exit code is that of the worst failure.
    """
    from millstream.plan.run_options import RunOptions

    gc.enable()
    found = find_pipelines(pipelines)
    if found.problems:
        raise SpecError(found.problems)
    flags = setting_flags(set_, checkpoint=checkpoint, master=master, profile=profile) | _trigger_flags(trigger) | plugin_flags(plugin)
    wanted = RunOptions(
        reset=tuple(reset or ()),
        again=again,
        accept_change=accept_change,
        redeliver=redeliver,
        accept_target=accept_target,
        accept_replay=accept_replay,
        inspect=inspect_address(inspect),
        log_format=log_format.value if log_format else "text",
        checked=True,
        flags=True,
    )
    output = RunOutput(format, log_format, LogLevel.error if quiet else log_level, quiet)
    if len(found.files) > 1:
        from millstream.cli.run_several import run_several

        if wanted.inspect is not None and wanted.inspect.port:
            message = "several pipelines cannot share one port: each has a page of its own"
            raise UsageError([Diagnostic("MS188", message, help="`--inspect` without an address gives each a free port")])

        run_several(found.files, config, flags, wanted, output)
    else:
        _run_one(found.files[0], config, flags, wanted, output)


def _run_one(pipeline: Path, config: Path | None, flags: dict[str, str], wanted: RunOptions, output: RunOutput) -> None:
    from millstream.cli.summary import summary
    from millstream.registry import engine

    log = output.error_log(pipeline.stem)
    try:
        topology = load_or_fail(pipeline, config, flags, show_warnings=log.add_diagnostics if log else show)
    except MillstreamError as error:
        raise output.exception_for(error, log) from None
    view = output.view_of(topology)
    stop = threading.Event()
    received = catch_signals([view], stop.set)
    try:
        with view, output.reserve_stdout():
            report: Report = engine()().run(topology, replace(wanted, watch=view.update, tell=view.add_note, stop=stop))
    except MillstreamError as error:
        if output.format is Format.json:
            print(json.dumps(failure_document(topology.name, error.diagnostics)))
        if log is None and not output.quiet:
            view.fail(error.diagnostics)
        raise output.exception_for(error, log) from error.__cause__
    if output.format is Format.json:
        print(json.dumps(report.as_dict()))
    view.end(report)
    if output.has_summary:
        narrate(summary(topology, report))
    if received.number:
        raise typer.Exit(128 + received.number)


def _trigger_flags(trigger: str | None) -> dict[str, str]:
    if trigger is None:
        return {}
    if trigger[:1].isdigit():
        return {"trigger.type": "interval", "trigger.every": trigger}
    return {"trigger.type": trigger}
