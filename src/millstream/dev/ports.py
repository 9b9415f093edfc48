"""Ports of throwaway servers, on loopback."""

from __future__ import annotations

import socket

from millstream.errors import Diagnostic, SetupError

HOST = "127.0.0.1"


def free_port() -> int:
    """A free port."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def require_free(port: int, who: str) -> None:
    """Refuse a port that is in use."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
    except OSError as error:
        message = f"{who} cannot listen on port {port}: {(error.strerror or str(error)).lower()}"
        raise SetupError(Diagnostic("MS047", message, help="choose another one; `--port 0` takes a free one")) from None
