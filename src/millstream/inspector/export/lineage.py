"""Sends the lineage of a run: its start, now and then that it still runs, and its end, in a thread of its own.

The run does not depend on the receiver: a failure is one warning.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from millstream.clients.http import NotTakenError, post
from millstream.inspector.attended import AttendedRun
from millstream.inspector.export.lineage_events import Kind, LineageEvents
from millstream.observe.events import Failed
from millstream.plan.settings import Lineage

_LAST_SECONDS = 6.0
_END: dict[str, Kind] = {"done": "COMPLETE", "stopped": "COMPLETE", "failed": "FAIL"}


class LineagePush:
    """The thread that sends."""

    def __init__(self, run: AttendedRun, settings: Lineage) -> None:
        self._run, self._settings = run, settings
        self._events = LineageEvents(run, settings.namespace)
        self._facts = run.recorder.events.open(1000)
        self._ending = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._push, daemon=True, name="lineage")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Send how the run has ended."""
        self._ending.set()
        self._thread.join(_LAST_SECONDS)
        self._run.recorder.events.close(self._facts)

    def _push(self) -> None:
        self._send(self._events.event("START"))
        while not self._ending.wait(self._settings.every.seconds):
            self._facts.take()
            self._send(self._events.event("RUNNING"))
        self._send(self._end())

    def _end(self) -> dict[str, Any]:
        found, _ = self._facts.take()
        errors = [f"{each.code}: {each.message}" for each in found if isinstance(each, Failed)]
        kind = "FAIL" if errors else _END.get(self._run.recorder.snapshot().state, "ABORT")
        return self._events.event(kind, "\n".join(errors) or ("the run has failed" if kind == "FAIL" else ""))

    def _send(self, event: dict[str, Any]) -> None:
        text = self._run.redact(json.dumps(event, ensure_ascii=False))
        try:
            if self._settings.url is not None:
                post(self._settings.url, text.encode(), "application/json", self._settings.headers)
            else:
                _append(Path(self._settings.file or ""), text)
        except (NotTakenError, OSError) as error:
            if not self._warned:
                self._warned = True
                where, reason = self._settings.url or self._settings.file, getattr(error, "strerror", None) or error
                self._run.recorder.warn(self._run.redact(f"lineage does not reach {where}: {reason}. The run goes on"))


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(f"{line}\n")
