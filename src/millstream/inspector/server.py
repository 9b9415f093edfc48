"""Serves a run on a socket of this machine, and on a TCP port if asked.

The socket exists from the start of a run. The web server behind it is imported and started by the first connection, so a run that nobody
looks at pays for nothing but the socket.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.inspector.access import Access
from millstream.inspector.attended import AttendedRun
from millstream.plan.run_options import InspectAddress

if TYPE_CHECKING:
    import uvicorn

_SECONDS = 5


@dataclass
class Server:
    """Serves one run on one listening socket."""

    run: AttendedRun
    listener: socket.socket
    access: Access
    open_page: Callable[[InspectAddress], str]
    _wake: tuple[socket.socket, socket.socket] = field(default_factory=socket.socketpair)
    _server: uvicorn.Server | None = None
    _thread: threading.Thread | None = None
    _closing: bool = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, daemon=True, name="inspector")
        self._thread.start()

    def close(self) -> None:
        """End it. Open connections have a second to send what is left."""
        self.begin_closing()
        if self._thread is not None:
            self._thread.join(_SECONDS)
        for each in (self.listener, *self._wake):
            with suppress(OSError):
                each.close()

    def begin_closing(self) -> None:
        """Several servers end at the same time."""
        if self._closing:
            return
        self._closing = True
        if self._server is not None:
            self._server.should_exit = True
        self._wake[0].send(b"x")

    def _serve(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.listener, selectors.EVENT_READ)
            waiting.register(self._wake[1], selectors.EVENT_READ)
            waiting.select()
        if self._closing:
            return
        import uvicorn

        from millstream.inspector.app import application

        app = application(self.run, self.access, self.open_page)
        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
        settings = uvicorn.Config(app, lifespan="off", ws="none", proxy_headers=False, timeout_graceful_shutdown=1, **quiet)
        self._server = uvicorn.Server(settings)
        self._server.should_exit = self._closing  # it was asked to end meanwhile
        self._server.run(sockets=[self.listener])
