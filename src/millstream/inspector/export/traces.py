"""Sends the traces of a run to a collector, in a thread of its own.

The run does not depend on the collector: spans that it does not take are dropped, with one warning.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from millstream.clients.http import NotTakenError, post
from millstream.inspector.attended import AttendedRun
from millstream.inspector.export.push import require_messages
from millstream.inspector.export.spans import OpenEpoch, Span
from millstream.observe.events import EpochFinished, EpochPlanned, Event, Failed, Restarting
from millstream.observe.traced import Passage
from millstream.plan.settings import Otlp

_EVERY_SECONDS = 1.0
_LAST_SECONDS = 6.0
"""How long the end of a run waits for the last message."""
_SPANS = 500
"""Spans of a message."""


class TracesPush:
    """The thread that sends."""

    def __init__(self, run: AttendedRun, settings: Otlp) -> None:
        require_messages()
        self._run, self._settings = run, settings
        self._facts = run.recorder.events.open()
        self._open: dict[str, OpenEpoch] = {}
        """Query → the epoch that runs"""
        self._passages: dict[tuple[str, int], list[Passage]] = {}
        self._ending = threading.Event()
        self._warned = self._failing = False
        self._thread = threading.Thread(target=self._push, daemon=True, name="otlp traces")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Send the last spans."""
        self._ending.set()
        self._thread.join(_LAST_SECONDS)
        self._run.recorder.events.close(self._facts)

    def _push(self) -> None:
        while True:
            ended = self._ending.wait(_EVERY_SECONDS)
            try:
                self._send(self._take())
            except Exception as error:  # noqa: BLE001 — whatever it is, the run goes on, and so do later traces
                self._warn(f"traces are missing: {type(error).__name__}: {error}")
            if ended:
                return

    def _take(self) -> list[Span]:
        found, lost = self._facts.take()
        passages, lost_records = self._run.recorder.traced.take()  # put before the epoch's last event
        self._passages |= passages
        if lost or lost_records:
            self._warn("more happened than can be sent: traces of some epochs are missing")
        return [span for event in found for span in self._spans_at(event)]

    def _spans_at(self, event: Event) -> Iterator[Span]:
        """The spans of an epoch that ends with this event."""
        if isinstance(event, EpochPlanned):
            self._open[event.query] = OpenEpoch(self._run.name, event)
        elif isinstance(event, EpochFinished):
            yield from self._end(event.query, event)
        elif isinstance(event, Restarting):
            yield from self._end(event.query, event, f"{event.code}: {event.message}")
        elif isinstance(event, Failed):
            for query in list(self._open):
                yield from self._end(query, event, f"{event.code}: {event.message}")
        elif (query := getattr(event, "query", "")) in self._open:
            self._open[query].add(event)

    def _end(self, query: str, end: Event, error: str = "") -> Iterator[Span]:
        epoch = self._open.pop(query, None)
        if epoch is not None:
            passages = self._passages.pop(epoch.key, [])
            others = ((key, kept) for key, kept in self._passages.items() if key[0] != query or key[1] > epoch.key[1])
            self._passages = dict(others)  # without those of epochs whose end was lost
            yield from epoch.spans(self._run.topology, passages, end, error)

    def _send(self, spans: list[Span]) -> None:
        from millstream.inspector.export.otlp_metrics import resource_of
        from millstream.inspector.export.otlp_traces import message_of

        for first in range(0, len(spans), _SPANS):
            if self._ending.is_set() and self._failing:  # the end does not wait for a collector that does not answer
                return
            self._post(message_of(spans[first : first + _SPANS], resource_of(self._run), self._run.redact))

    def _post(self, message: bytes) -> None:
        url = f"{self._settings.endpoint.rstrip('/')}/v1/traces"
        try:
            post(url, message, "application/x-protobuf", self._settings.headers)
            self._failing = False
        except NotTakenError as error:
            self._failing = True
            self._warn(f"traces do not reach {url}: {error}. The run goes on, without those of this time")

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            self._run.recorder.warn(self._run.redact(text))
