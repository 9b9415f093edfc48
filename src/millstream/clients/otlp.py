"""Sends OpenTelemetry messages to a collector: OTLP over HTTP, as Protobuf.

The messages come from the package `opentelemetry-proto`; the request is the standard library's. A collector is never worth waiting for:
one attempt with a short time limit, and the caller decides what a failure means.
"""

from __future__ import annotations

import gzip
import importlib.util
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from millstream.errors import Diagnostic, SetupError
from millstream.secrets import Secret

Signal = Literal["metrics", "traces"]
_SECONDS = 5.0


class CollectorError(Exception):
    """Why the collector did not take a message, in a few words."""


@dataclass(frozen=True, slots=True)
class Collector:
    """Where messages go."""

    endpoint: str
    headers: Mapping[str, str | Secret]

    def send(self, signal: Signal, message: bytes) -> None:
        """Send one request; raises `CollectorError`."""
        headers = {name: value.reveal() if isinstance(value, Secret) else value for name, value in self.headers.items()}
        headers |= {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}
        request = urllib.request.Request(f"{self.endpoint.rstrip('/')}/v1/{signal}", gzip.compress(message, 3), headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                answer.read()
        except (OSError, ValueError, urllib.error.HTTPError) as error:
            raise CollectorError(_reason(error)) from None


def require_otlp() -> None:
    """Raise `SetupError` if the messages' package is missing."""
    if importlib.util.find_spec("opentelemetry") is None or importlib.util.find_spec("opentelemetry.proto") is None:
        message = "`settings.telemetry.otlp` needs the package `opentelemetry-proto`"
        raise SetupError(Diagnostic("MS045", message, help="`pip install 'millstream[otlp]'`"))


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers {error.code} {error.reason}"
    cause = getattr(error, "reason", error)
    return (getattr(cause, "strerror", None) or str(cause) or type(error).__name__).lower()
