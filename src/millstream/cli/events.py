"""The event log of a run without a terminal: one line per event on stderr, as text or as JSON.

The events come from the same snapshots as the live view. Epochs, rejects and late rows are added up and written at most every ten seconds,
and only when there are new ones. Notes, restarts and the end are written at once.
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
    """The format of a line."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """The lowest level that is written."""

    info = "info"
    warning = "warning"
    error = "error"


class EventLog:
    """Writes the events of one pipeline."""

    def __init__(self, pipeline: str, format: LogFormat, level: LogLevel, pause: float = _PAUSE) -> None:
        self._pipeline, self._format, self._pause = pipeline, format, pause
        self._least = list(LogLevel).index(level)
        self._noted, self._epochs = 0, 0
        self._warned: dict[str, int] = {}
        """metric → its sum in the last warning"""
        self._summarised_at = time.monotonic()
        self.running = self.ended = False

    def __enter__(self) -> EventLog:
        self._write(LogLevel.info, "starting", {})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: the log has nothing to close, but the live view has."""

    def update(self, snapshot: Snapshot) -> None:
        """Write the events since the last snapshot. A run calls this several times per second."""
        if not self.running and snapshot.state == "running":
            self.running = True
            self._write(LogLevel.info, "started", {"queries": list(snapshot.queries)})
        self._add_notes(snapshot.notes)
        if time.monotonic() - self._summarised_at >= self._pause:
            self._summarise(snapshot)

    def add_note(self, text: str) -> None:
        """Write a note about the whole run, such as a download of jars or a requested stop."""
        self._write(LogLevel.info, "note", {"message": text})

    def end(self, report: Report) -> None:
        """Write that the run is done or stopped."""
        self.ended = True
        self._add_notes(report.notes)
        self._warn_of_rows(report.snapshot)
        self._write(LogLevel.info, report.state, {**_totals(report.snapshot), "seconds": round(report.seconds, 1)})

    def add_diagnostics(self, found: Iterable[Diagnostic]) -> None:
        """Write the errors and warnings of a pipeline's file or of a run."""
        for each in found:
            facts = {key: value for key, value in each.as_dict().items() if value is not None and key != "level"}
            self._write(LogLevel(each.level), "failed" if each.level == "error" else "warning", facts)

    def fail(self, found: Sequence[Diagnostic]) -> None:
        """Write one line that the run has failed. The caller shows the errors themselves."""
        self.ended = True
        first = {"code": found[0].code, "message": found[0].message} if found else {}
        self._write(LogLevel.error, "failed", first)

    def _add_notes(self, notes: tuple[str, ...]) -> None:
        for note in notes[self._noted :]:
            if isinstance(note, Restart):
                facts = {
                    **({"code": note.code} if note.code else {}),
                    "attempt": note.attempt,
                    "in_seconds": note.seconds,
                    "message": note.reason,
                }
                self._write(LogLevel.warning, "restart", {**({"query": note.query} if note.query else {}), **facts})
                continue
            self._write(LogLevel.warning if isinstance(note, Caution) else LogLevel.info, "note", {"message": note})
        self._noted = len(notes)

    def _summarise(self, snapshot: Snapshot) -> None:
        self._summarised_at = time.monotonic()
        if snapshot.state == "starting":
            ready = [name for name, query in snapshot.queries.items() if query.state != "starting"]
            self._write(LogLevel.info, "starting", {"seconds": round(snapshot.seconds, 1), **({"ready": ready} if ready else {})})
            return
        self._warn_of_rows(snapshot)
        epochs = sum(query.epochs for query in snapshot.queries.values())
        totals = _totals(snapshot)
        if epochs > self._epochs or totals.keys() & {"waiting", "lag_seconds"}:  # a long epoch has an event, too
            self._write(LogLevel.info, "epochs", {"new": epochs - self._epochs, **totals})
        self._epochs = epochs

    def _warn_of_rows(self, snapshot: Snapshot) -> None:
        """Write a warning for each metric such as rejects or late rows that has grown."""
        for metric in [metric for metric in metrics_of(NodeFacts) if metric.warning]:
            event = metric.name
            nodes = {name: value for name, facts in snapshot.nodes.items() if (value := metric.value(facts))}
            if sum(nodes.values()) > self._warned.get(event, 0):
                self._write(LogLevel.warning, event, {"nodes": nodes})
            self._warned[event] = sum(nodes.values())

    def _write(self, level: LogLevel, event: str, facts: Mapping[str, Any]) -> None:
        if list(LogLevel).index(level) < self._least:
            return
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._format is LogFormat.json:
            line = json.dumps({"time": at, "level": level.value, "event": event, "pipeline": self._pipeline, **facts}, default=str)
        else:
            line = f"{at} {level.value.upper():<7} {self._pipeline} {event}{''.join(_format_facts(facts))}"
        try:
            print(f"{line}\n", end="", file=sys.stderr, flush=True)  # one write: several pipelines may print at the same time
        except BrokenPipeError:  # the reader of the lines has exited; the run continues
            sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 — it replaces stderr until the process ends


def _totals(snapshot: Snapshot) -> dict[str, Any]:
    """The totals of the run so far, without those that are not counted."""
    totals: dict[str, Any] = {"epochs": sum(query.epochs for query in snapshot.queries.values()), "read": {}, "written": {}}
    for metric in metrics_of(NodeFacts):
        for name, facts in snapshot.nodes.items():
            key, value = metric.total.get(facts.kind, ""), metric.value(facts)
            if key and (value or (value is not None and key in totals)):
                totals.setdefault(key, {})[name] = value
    lag = max((query.lag_seconds for query in snapshot.queries.values()), default=0.0)
    return totals | ({"lag_seconds": round(lag, 1)} if lag >= 1 else {})


def _format_facts(facts: Mapping[str, Any]) -> list[str]:
    """The facts of an event as text: a message unchanged, anything else as `name=value`."""
    found = []
    for name, value in facts.items():
        if name == "message":
            found.append(f": {value}")
        elif isinstance(value, Mapping):
            found += [f" {name}.{key}={each}" for key, each in value.items()]
        else:
            found.append(f" {name}={','.join(map(str, value)) if isinstance(value, list) else value}")
    return found
