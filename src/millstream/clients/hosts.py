"""Classifies host addresses."""

from __future__ import annotations


def is_loopback(host: str) -> bool:
    """Whether data sent to a host, or to a socket's folder, stays on this machine."""
    return host.strip() in {"", "localhost", "::1", "[::1]"} or host.strip().startswith(("127.", "/"))
