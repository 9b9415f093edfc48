"""What an operator reads where nobody watches: one line per event on stderr, as text or as JSON.

The lines are made of the same snapshots that the live view shows. Epochs and refused rows are summed up, at most every ten seconds, and
only when there were some; notes, restarts and the end are told when they happen.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millstream.observe.facts import Caution, NodeFacts, Restart
from millstream.observe.metrics import metrics_of

if TYPE_CHECKING:
    from millstream.errors import Diagnostic
    from millstream.observe.facts import Snapshot
    from millstream.observe.report import Report

_PAUSE = 10.0
"""Seconds between two summaries."""


class LogFormat(StrEnum):
    """How a line is written."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """The least that is written."""

    info = "info"
    warning = "warning"
    error = "error"


class EventLog:
    """Turns snapshots into lines."""

    def __init__(self, pipeline: str, format: LogFormat, level: LogLevel, pause: float = _PAUSE) -> None:
        self._pipeline, self._format, self._pause = pipeline, format, pause
        self._least = list(LogLevel).index(level)
        self._noted, self._epochs = 0, 0
        self._told: dict[str, int] = {}
        self._told_at = time.monotonic()
        self.running = False

    def __enter__(self) -> EventLog:
        self._write(LogLevel.info, "starting", {})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing to put away."""

    def close(self) -> None:
        """Nothing to put away."""

    def update(self, snapshot: Snapshot) -> None:
        """Called several times a second."""
        if not self.running and snapshot.state == "running":
            self.running = True
            self._write(LogLevel.info, "started", {"queries": list(snapshot.queries)})
        self._notes(snapshot.notes)
        if time.monotonic() - self._told_at >= self._pause:
            self._sum_up(snapshot)

    def say(self, text: str) -> None:
        """A sentence about the run as a whole: jars that are fetched, a stop that was asked for."""
        self._write(LogLevel.info, "note", {"message": text})

    def ended(self, report: Report) -> None:
        """The run came to its end, or was stopped."""
        self._notes(report.notes)
        self._refused(report.snapshot)
        self._write(LogLevel.info, report.state, {**_totals(report.snapshot), "seconds": round(report.seconds, 1)})

    def tell(self, found: Iterable[Diagnostic]) -> None:
        """What is wrong with the pipeline, or what has ended it."""
        for each in found:
            facts = {key: value for key, value in each.as_dict().items() if value is not None and key != "level"}
            self._write(LogLevel(each.level), "failed" if each.level == "error" else "warning", facts)

    def failed(self, found: Sequence[Diagnostic]) -> None:
        """In one line that the run has failed; the errors themselves are shown after it."""
        first = {"code": found[0].code, "message": found[0].message} if found else {}
        self._write(LogLevel.error, "failed", first)

    def _notes(self, notes: tuple[str, ...]) -> None:
        for note in notes[self._noted :]:
            if isinstance(note, Restart):
                facts = {"attempt": note.attempt, "in_seconds": note.seconds, "message": note.reason}
                self._write(LogLevel.warning, "restart", {**({"query": note.query} if note.query else {}), **facts})
                continue
            self._write(LogLevel.warning if isinstance(note, Caution) else LogLevel.info, "note", {"message": note})
        self._noted = len(notes)

    def _sum_up(self, snapshot: Snapshot) -> None:
        self._told_at = time.monotonic()
        self._refused(snapshot)
        epochs = sum(query.epochs for query in snapshot.queries.values())
        totals = _totals(snapshot)
        if epochs > self._epochs or totals.keys() & {"waiting", "lag_seconds"}:  # an epoch that takes long is told, too
            self._write(LogLevel.info, "epochs", {"new": epochs - self._epochs, **totals})
        self._epochs = epochs

    def _refused(self, snapshot: Snapshot) -> None:
        for metric in [metric for metric in metrics_of(NodeFacts) if metric.warning]:
            event = metric.name
            nodes = {name: value for name, facts in snapshot.nodes.items() if (value := metric.value(facts))}
            if sum(nodes.values()) > self._told.get(event, 0):
                self._write(LogLevel.warning, event, {"nodes": nodes})
            self._told[event] = sum(nodes.values())

    def _write(self, level: LogLevel, event: str, facts: Mapping[str, Any]) -> None:
        if list(LogLevel).index(level) < self._least:
            return
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._format is LogFormat.json:
            line = json.dumps({"time": at, "level": level.value, "event": event, "pipeline": self._pipeline, **facts}, default=str)
        else:
            line = f"{at} {level.value.upper():<7} {self._pipeline} {event}{''.join(_words(facts))}"
        try:
            print(f"{line}\n", end="", file=sys.stderr, flush=True)  # in one piece: several pipelines may write
        except BrokenPipeError:  # whoever read the lines has gone; the run goes on
            sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 — it takes stderr's place until the process ends


def _totals(snapshot: Snapshot) -> dict[str, Any]:
    """How far the run has come. What nobody counts is left out."""
    totals: dict[str, Any] = {"epochs": sum(query.epochs for query in snapshot.queries.values()), "read": {}, "written": {}}
    for metric in metrics_of(NodeFacts):
        for name, facts in snapshot.nodes.items():
            key, value = metric.total.get(facts.kind, ""), metric.value(facts)
            if key and (value or (value is not None and key in totals)):
                totals.setdefault(key, {})[name] = value
    lag = max((query.lag_seconds for query in snapshot.queries.values()), default=0.0)
    return totals | ({"lag_seconds": round(lag, 1)} if lag >= 1 else {})


def _words(facts: Mapping[str, Any]) -> list[str]:
    """Facts after the event: a message as it is, anything else as `name=value`."""
    found = []
    for name, value in facts.items():
        if name == "message":
            found.append(f": {value}")
        elif isinstance(value, Mapping):
            found += [f" {name}.{key}={each}" for key, each in value.items()]
        else:
            found.append(f" {name}={','.join(map(str, value)) if isinstance(value, list) else value}")
    return found
