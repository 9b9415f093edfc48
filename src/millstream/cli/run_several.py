"""`millstream run` with several pipelines: all are loaded and checked before anything starts, then they run side by side in one Spark."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from millstream.cli.output import Format, fail, narrate, show
from millstream.cli.telling import Telling, catch_signals
from millstream.errors import Diagnostic, MillstreamError, SpecError, UsageError

if TYPE_CHECKING:
    from millstream.cli.events import EventLog
    from millstream.cli.folders import Found
    from millstream.cli.live import Live
    from millstream.engine.several import Outcome
    from millstream.plan.run_options import RunOptions
    from millstream.plan.topology import Topology

_BUG = 70
"""The exit code of a pipeline whose outcome was never reported."""
_WORST_FIRST = (70, 1, 78, 75, 143, 130)
"""Exit codes; what may work later is better than what will not."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of the pipelines."""

    topology: Topology
    view: Live | EventLog
    stop: threading.Event = field(default_factory=threading.Event)


def run_several(found: Found, config: Path | None, flags: Mapping[str, str], wanted: RunOptions, telling: Telling) -> None:
    """Run the pipelines; the exit code is that of the worst."""
    from millstream.engine.several import run_together

    _refuse_single(flags, wanted)
    members = _members(_load(found, config, flags, telling), telling)
    received = catch_signals([member.view for member in members])
    received.on_first = lambda: _stop(members)
    stdout, codes = sys.stdout, dict.fromkeys(range(len(members)), _BUG)

    def ended(index: int, outcome: Outcome) -> None:
        codes[index] = _told(members[index], outcome, telling, stdout)

    with ExitStack() as views, telling.free_stdout():
        for member in members:
            views.enter_context(member.view)
        run_together([(member.topology, _options(member, wanted)) for member in members], ended)
    found_codes = [*codes.values(), 128 + received.number if received.number else 0]
    if any(found_codes):
        raise typer.Exit(next((code for code in _WORST_FIRST if code in found_codes), max(found_codes)))


def _stop(members: Sequence[Member]) -> None:
    for member in members:
        member.stop.set()


def _refuse_single(flags: Mapping[str, str], wanted: RunOptions) -> None:
    """Flags that are about one pipeline."""
    given = [*(["--checkpoint"] if "checkpoint" in flags else []), *(["--reset"] if wanted.reset else [])]
    if given:
        message = f"`{given[0]}` is about one pipeline, and there are several"
        raise UsageError(Diagnostic("MS173", message, help="run that pipeline alone"))


def _load(found: Found, config: Path | None, flags: Mapping[str, str], telling: Telling) -> list[Topology]:
    """All plans, or all mistakes of all files at once."""
    from millstream.rules.several import conflicts
    from millstream.spec.loader import load

    loaded = {path: load(path, environ=os.environ, config=config, flags=flags) for path in found.files}
    found = found.without(part for each in loaded.values() for part in each.included)
    chosen = [loaded[path] for path in found.files]
    errors = [error for each in chosen for error in each.errors]
    topologies = [each.topology for each in chosen if each.topology is not None]
    lines = telling.lines("")
    if errors or (errors := conflicts(topologies)):
        raise telling.told(SpecError(errors), lines)
    warnings = [warning for each in chosen for warning in each.warnings]
    (lines.tell if lines else show)(warnings)
    return topologies


def _members(topologies: Sequence[Topology], telling: Telling) -> list[Member]:
    screen = None
    if telling.is_live:
        from millstream.cli.live import Screen

        screen = Screen()
    return [Member(topology, telling.view(topology, screen)) for topology in topologies]


def _options(member: Member, wanted: RunOptions) -> RunOptions:
    return replace(wanted, watch=member.view.update, tell=member.view.say, stop=member.stop)


def _told(member: Member, outcome: Outcome, telling: Telling, stdout: TextIO) -> int:
    """Say what came of a pipeline; its exit code."""
    from millstream.cli.summary import summary
    from millstream.observe.report import Report

    name = member.topology.name
    if isinstance(outcome, Report):
        if telling.format is Format.json:
            print(json.dumps(outcome.as_dict()), file=stdout, flush=True)
        member.view.ended(outcome)
        if telling.summarises:
            narrate(summary(member.topology, outcome))
        return 0
    found: Sequence[Diagnostic] = outcome.diagnostics if isinstance(outcome, MillstreamError) else ()
    if telling.format is Format.json:
        print(json.dumps(_failure(name, found)), file=stdout, flush=True)
    lines = telling.lines(name)
    if lines is not None and isinstance(outcome, MillstreamError):
        lines.tell(found)
        return outcome.exit_code
    if not telling.quiet:
        member.view.failed(found)
    narrate(f"✗ {name} failed")
    return fail(outcome, debug="--debug" in sys.argv)


def _failure(name: str, found: Sequence[Diagnostic]) -> dict[str, Any]:
    """What stands in the place of a report."""
    return {"pipeline": name, "state": "failed", "errors": [each.as_dict() for each in found]}
