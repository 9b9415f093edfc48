"""`millstream run` with several pipelines: all files are loaded and checked first, then the pipelines run at the same time in one Spark."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from millstream.cli.output import Format, fail, narrate, show
from millstream.cli.run_output import RunOutput, failure_document
from millstream.cli.signals import catch_signals
from millstream.errors import Diagnostic, MillstreamError, SpecError, UsageError
from millstream.observe.gate import Gate

if TYPE_CHECKING:
    from millstream.cli.events import EventLog
    from millstream.cli.live import Live
    from millstream.engine.several import Outcome
    from millstream.plan.run_options import RunOptions
    from millstream.plan.topology import Topology

_BUG = 70
"""The exit code of a pipeline whose outcome was never reported."""
_WORST_FIRST = (70, 1, 78, 75, 143, 130)
"""Exit codes. A temporary failure is better than a permanent one."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of the pipelines, with its view."""

    topology: Topology
    view: Live | EventLog
    stop: threading.Event = field(default_factory=threading.Event)


def run_several(files: Sequence[Path], config: Path | None, flags: Mapping[str, str], wanted: RunOptions, output: RunOutput) -> None:
    """Run the pipelines. The exit code is that of the worst failure."""
    from millstream.engine.several import run_together

    _refuse_single_options(flags, wanted)
    members = _members(_load(files, config, flags, output), output)
    received = catch_signals([member.view for member in members], lambda: _stop(members))
    stdout, codes = sys.stdout, dict.fromkeys(range(len(members)), _BUG)

    def finish(index: int, outcome: Outcome) -> None:
        codes[index] = _print_outcome(members[index], outcome, output, stdout)

    with ExitStack() as views, output.reserve_stdout():
        for member in members:
            views.enter_context(member.view)
        run_together([(member.topology, _options(member, wanted)) for member in members], finish)
    exit_codes = [*codes.values(), 128 + received.number if received.number else 0]
    if any(exit_codes):
        raise typer.Exit(next((code for code in _WORST_FIRST if code in exit_codes), max(exit_codes)))


def _stop(members: Sequence[Member]) -> None:
    for member in members:
        member.stop.set()


def _refuse_single_options(flags: Mapping[str, str], wanted: RunOptions) -> None:
    """Refuse options that only one pipeline can have."""
    given = [*(["--checkpoint"] if "checkpoint" in flags else []), *(["--reset"] if wanted.reset else [])]
    if given:
        message = f"`{given[0]}` applies to one pipeline, but there are several"
        raise UsageError(Diagnostic("MS173", message, help="run that pipeline alone"))


def _load(files: Sequence[Path], config: Path | None, flags: Mapping[str, str], output: RunOutput) -> list[Topology]:
    """The topologies of all files, or an exception with the errors of all files."""
    from millstream.rules.several import conflicts
    from millstream.spec.loader import load

    loaded = {path: load(path, environ=os.environ, config=config, flags=flags) for path in files}
    errors = [error for each in loaded.values() for error in each.errors]
    topologies = {path: each.topology for path, each in loaded.items() if each.topology is not None}
    log = output.error_log("")
    if errors or (errors := conflicts(topologies)):
        raise output.exception_for(SpecError(errors), log)
    warnings = [warning for each in loaded.values() for warning in each.warnings]
    (log.add_diagnostics if log else show)(warnings)
    return list(topologies.values())


def _members(topologies: Sequence[Topology], output: RunOutput) -> list[Member]:
    screen = None
    if output.is_live:
        from millstream.cli.live import Screen

        screen = Screen()
    return [Member(topology, output.view_of(topology, screen)) for topology in topologies]


def _options(member: Member, wanted: RunOptions) -> RunOptions:
    return replace(wanted, watch=member.view.update, tell=member.view.add_note, stop=member.stop, gate=Gate())


def _print_outcome(member: Member, outcome: Outcome, output: RunOutput, stdout: TextIO) -> int:
    """Print the report or the errors of a pipeline, and return its exit code."""
    from millstream.cli.summary import summary
    from millstream.observe.report import Report

    name = member.topology.name
    if isinstance(outcome, Report):
        if output.format is Format.json:
            _print_line(outcome.as_dict(), stdout)
        member.view.end(outcome)
        if output.has_summary:
            narrate(summary(member.topology, outcome))
        return 0
    found: Sequence[Diagnostic] = outcome.diagnostics if isinstance(outcome, MillstreamError) else ()
    if output.format is Format.json:
        _print_line(failure_document(name, found), stdout)
    log = output.error_log(name)
    if log is not None and isinstance(outcome, MillstreamError):
        log.add_diagnostics(found)
        return outcome.exit_code
    if not output.quiet:
        member.view.fail(found)
    narrate(f"✗ {name} failed")
    return fail(outcome, debug="--debug" in sys.argv)


def _print_line(document: Mapping[str, Any], stdout: TextIO) -> None:
    """Print one JSON object. A reader that has closed the pipe does not make a pipeline fail."""
    with suppress(BrokenPipeError):
        print(json.dumps(document), file=stdout, flush=True)
