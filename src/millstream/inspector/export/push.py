"""Sends the metrics of a run to a collector every few seconds, in a thread of its own.

The run does not depend on the collector: a failure is one warning, and the next message contains the totals anyway.
"""

from __future__ import annotations

import importlib.util
import threading

from millstream.clients.http import NotTakenError, post
from millstream.errors import Diagnostic, SetupError
from millstream.inspector.attended import AttendedRun
from millstream.plan.settings import Otlp

_LAST_SECONDS = 6.0
"""How long the end of a run waits for the last message."""


class MetricsPush:
    """The thread that sends."""

    def __init__(self, run: AttendedRun, settings: Otlp) -> None:
        require_messages()
        self._run, self._settings = run, settings
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
            ended = self._ending.wait(self._settings.metrics_every.seconds)
            if not (ended and self._failing):  # the end does not wait for a collector that does not answer
                self._send(message_of(self._run))
            if ended:
                return

    def _send(self, message: bytes) -> None:
        url = f"{self._settings.endpoint.rstrip('/')}/v1/metrics"
        try:
            post(url, message, "application/x-protobuf", self._settings.headers)
            self._failing = False
        except NotTakenError as error:
            self._failing = True
            if not self._warned:
                self._warned = True
                self._run.recorder.warn(self._run.redact(f"metrics do not reach {url}: {error}. The run goes on and keeps trying"))


def require_messages() -> None:
    if importlib.util.find_spec("opentelemetry") is None or importlib.util.find_spec("opentelemetry.proto") is None:
        message = "`settings.telemetry.otlp` needs the package `opentelemetry-proto`"
        raise SetupError(Diagnostic("MS045", message, help="`pip install 'millstream[otlp]'`"))
