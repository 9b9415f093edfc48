"""A run that has ended, as its history in the checkpoint tells it: the same page shows it, and nothing can be asked of it.

A run that has ended without a word has died. It counts as failed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, NoReturn

from millstream.checkpoint.history import History
from millstream.checkpoint.layout import Checkpoint
from millstream.errors import Diagnostic, RunError
from millstream.inspector.attended import AttendedRun
from millstream.observe import events
from millstream.observe.events import Event, Measured
from millstream.observe.facts import Caution, NodeFacts, QueryFacts, Snapshot, State, StateFacts
from millstream.observe.gate import Gate
from millstream.observe.histogram import Histogram
from millstream.observe.recorder import Recorder
from millstream.plan.secret_references import secrets_of
from millstream.plan.topology import Topology
from millstream.secrets import Redactor

_FINAL: frozenset[State] = frozenset({"done", "stopped", "failed"})


@dataclass(frozen=True)
class PastRun(AttendedRun):
    """The last run of a checkpoint."""

    def stop(self) -> NoReturn:
        self._refuse()

    def pause(self) -> NoReturn:
        self._refuse()

    def resume(self) -> NoReturn:
        self._refuse()

    def save(self, folder: str) -> NoReturn:
        self._refuse()

    def watch(self, name: str, where: str = "", *, begins: bool = False) -> NoReturn:
        self._refuse()

    def count_rates(self) -> None:
        """Nothing changes any more."""

    def _refuse(self) -> NoReturn:
        message = f"`{self.name}` does not run: this page shows how its last run has ended"
        raise RunError(Diagnostic("MS187", message, help="start it with `millstream run`"))


class _Recorded(Recorder):
    """The facts of a run that has ended."""

    def __init__(self, found: Snapshot) -> None:
        super().__init__(found.pipeline)
        self._found = found

    def snapshot(self) -> Snapshot:
        return self._found


def last_run(topology: Topology, checkpoint: Checkpoint) -> PastRun:
    """The last run that the history tells of."""
    history = History(checkpoint, Redactor(secrets_of(topology)))
    found = list(history.events())
    begins = [place for place, event in enumerate(found) if isinstance(event, events.RunStarted)]
    told = found[begins[-1] :] if begins else found
    start = told[0] if told and isinstance(told[0], events.RunStarted) else None
    began = start.at if start else 0.0
    measures = [event for event in history.measures() if isinstance(event, Measured) and event.at >= began]
    ended = max((event.at for event in (*told, *measures)), default=began)
    run = PastRun(
        topology,
        checkpoint,
        _Recorded(_snapshot(topology, told, measures, ended)),
        Gate(),
        threading.Event(),
        run=start.run if start else "",
        began=began,
        process=start.process if start else 0,
        ended_at=ended,
    )
    run.ended.set()
    return run


def _snapshot(topology: Topology, told: list[Event], measures: list[Measured], ended: float) -> Snapshot:
    state, notes = _end_of(told, ended)
    last = measures[-1] if measures else Measured(seconds=0.0, nodes={}, queries={})
    queries = {name: _query(name, facts, told, state) for name, facts in last.queries.items()}
    nodes = {name: _node(topology, name, facts) for name, facts in last.nodes.items()}
    return Snapshot(topology.name, state, last.seconds, nodes, queries, notes)


def _end_of(told: Iterable[Event], ended: float) -> tuple[State, tuple[str, ...]]:
    """The state of the run, and its notes."""
    state: State = "starting"
    notes: list[str] = []
    for event in told:
        if isinstance(event, events.RunChanged):
            state = event.state
        elif isinstance(event, events.Noted):
            notes.append(Caution(event.message) if event.warning else event.message)
        elif isinstance(event, events.Failed):
            notes.append(Caution(f"{event.code}: {event.message}"))
    if state in _FINAL:
        return state, tuple(notes)
    at = datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%d %H:%M:%S") if ended else ""
    died = f"the process has died: the history ends at {at} UTC without an end of the run" if at else "no run is on record"
    return "failed" if at else "stopped", (*notes, Caution(died))


def _query(name: str, facts: Mapping[str, float], told: Iterable[Event], end: State) -> QueryFacts:
    found = QueryFacts(
        epochs=int(facts.get("epochs", 0)),
        restarts=int(facts.get("restarts", 0)),
        durations=replace(Histogram(), total=facts.get("seconds", 0.0)),
    )
    for event in told:
        if isinstance(event, events.QueryChanged) and event.query == name:
            found = replace(found, state=event.state)
        elif isinstance(event, events.EpochFinished) and event.query == name:
            watermark = event.watermark or found.watermark
            found = replace(found, last_epoch=event.epoch, last_seconds=event.seconds, last_at=event.at, watermark=watermark)
    return found if found.state in _FINAL else replace(found, state=end)


def _node(topology: Topology, name: str, facts: Mapping[str, Any]) -> NodeFacts:
    known = {each.name for each in fields(NodeFacts)}
    counts = {key: value for key, value in facts.items() if key in known}
    node = topology.by_name.get(name)
    with suppress(KeyError):
        counts["state"] = StateFacts(facts["state_rows"], facts["state_bytes"])
    return NodeFacts(**counts, kind=node.kind if node is not None else "transform")
