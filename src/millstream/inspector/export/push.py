"""Sends the metrics of a run to a collector every few seconds, in a thread of its own.

The run does not depend on the collector: a failure is one warning, and the next message contains the totals anyway.
"""

from __future__ import annotations

import threading

from millstream.clients.otlp import Collector, CollectorError, require_otlp
from millstream.inspector.attended import AttendedRun
from millstream.plan.settings import Otlp

_LAST_SECONDS = 6.0
"""How long the end of a run waits for the last message."""


class MetricsPush:
    """The thread that sends."""

    def __init__(self, run: AttendedRun, settings: Otlp) -> None:
        require_otlp()
        self._run, self._collector = run, Collector(settings.endpoint, settings.headers)
        self._pause = settings.metrics_every.seconds
        self._ending = threading.Event()
        self._warned = self._failing = False
        self._thread = threading.Thread(target=self._push, daemon=True, name="otlp metrics")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Send the last totals."""
        self._ending.set()
        self._thread.join(_LAST_SECONDS)

    def _push(self) -> None:
        from millstream.inspector.export.otlp_metrics import message_of

        while True:
            ended = self._ending.wait(self._pause)
            if not (ended and self._failing):  # the end does not wait for a collector that does not answer
                self._send(message_of(self._run))
            if ended:
                return

    def _send(self, message: bytes) -> None:
        try:
            self._collector.send("metrics", message)
            self._failing = False
        except CollectorError as error:
            self._failing = True
            if not self._warned:
                self._warned = True
                where, reason = self._run.redact(self._collector.endpoint), self._run.redact(str(error))
                self._run.recorder.warn(f"metrics do not reach the collector {where}: {reason}. The run goes on and keeps trying")
