"""Sends reports over HTTP with the standard library: one attempt with a short time limit. The caller decides what a failure means."""

from __future__ import annotations

import gzip
import urllib.error
import urllib.request
from collections.abc import Mapping

from millstream.secrets import Secret

_SECONDS = 5.0


class NotTakenError(Exception):
    """Why a report was not taken, in a few words."""


def post(url: str, body: bytes, content_type: str, headers: Mapping[str, str | Secret]) -> None:
    """Send one request, compressed; raises `NotTakenError`."""
    try:
        own = {name: value.reveal() if isinstance(value, Secret) else value for name, value in headers.items()}
        own |= {"Content-Type": content_type, "Content-Encoding": "gzip"}
        with urllib.request.urlopen(urllib.request.Request(url, gzip.compress(body, 3), own), timeout=_SECONDS) as answer:
            answer.read()
    except (OSError, ValueError) as error:
        raise NotTakenError(_reason(error)) from None


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers {error.code} {error.reason}"
    cause = getattr(error, "reason", error)
    return (getattr(cause, "strerror", None) or str(cause) or type(error).__name__).lower()
