"""Makes a run visible: its history is written, other processes find it, and a page shows it if asked."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import quote

from millstream.errors import Diagnostic, MillstreamError, UsageError
from millstream.inspector import registration
from millstream.inspector.access import Access, is_loopback
from millstream.inspector.attended import AttendedRun
from millstream.inspector.export.lineage import LineagePush
from millstream.inspector.export.push import MetricsPush
from millstream.inspector.export.traces import TracesPush
from millstream.inspector.journal import Journal
from millstream.inspector.registration import Registration
from millstream.inspector.server import Server
from millstream.observe.events import Failed, RunStarted
from millstream.plan.run_options import InspectAddress, RunOptions
from millstream.plan.settings import Telemetry

TOKEN = "MILLSTREAM_TOKEN"
"""The environment variable with the token for orders. Without it a page on loopback has a token of its own, in its link."""

_SHORTEST = 16
"""Characters of a token."""


@contextmanager
def attended(run: AttendedRun, options: RunOptions, environ: Mapping[str, str]) -> Iterator[None]:
    """In the body the run can be looked at."""
    attendance = _Attendance(run, environ)
    try:
        if options.inspect is not None:
            link = attendance.open_page(options.inspect)
            shown = link if sys.stderr.isatty() else link.partition("#")[0]  # no token in a log: `millstream inspect` shows it
            options.tell(f"inspector: {shown}")
        attendance.push(run.topology.settings.telemetry)
        with suppress(OSError, MillstreamError):  # a machine without a folder for sockets; the run does not depend on it
            attendance.open_socket()
        with _reported(run):
            yield
    finally:
        attendance.close()


@contextmanager
def shown(run: AttendedRun, address: InspectAddress, environ: Mapping[str, str]) -> Iterator[str]:
    """In the body a page shows a run that has ended. Its link."""
    attendance = _Attendance(run, environ)
    try:
        yield attendance.open_page(address)
    finally:
        attendance.close()


@contextmanager
def _reported(run: AttendedRun) -> Iterator[None]:
    """Publish the start and the failures of a run, and write its history."""
    journal = Journal(run)
    journal.start()
    run.recorder.publish(RunStarted(pipeline=run.name, run=run.run, process=os.getpid(), checkpoint=run.checkpoint.storage.url))
    try:
        yield
    except MillstreamError as error:
        for each in error.diagnostics:
            message, detail = run.redact(each.message), run.redact(each.detail)
            run.recorder.publish(Failed(code=each.code, message=message, node=each.node, detail=detail, help=each.help))
        raise
    finally:
        journal.close()


class _Attendance:
    """The servers of one run."""

    def __init__(self, run: AttendedRun, environ: Mapping[str, str]) -> None:
        self._run, self._environ = run, environ
        self._servers: list[Server] = []
        self._socket, self._page = "", ""
        self._pushes: list[MetricsPush | TracesPush | LineagePush] = []

    def push(self, settings: Telemetry) -> None:
        """Report to others from now on, as the settings say."""
        if settings.otlp is not None:
            self._pushes.append(MetricsPush(self._run, settings.otlp))
            if any(node.options.telemetry.trace is not None for node in self._run.topology.sources):
                self._pushes.append(TracesPush(self._run, settings.otlp))
        if settings.lineage is not None:
            self._pushes.append(LineagePush(self._run, settings.lineage))
        for each in self._pushes:
            each.start()

    def open_socket(self) -> None:
        """For other processes of this user."""
        listener, path = registration.listen(self._environ)
        self._socket = str(path)
        self._serve(listener, Access())
        self._register()

    def open_page(self, address: InspectAddress) -> str:
        """For browsers; the link contains the token. There is one page: asked again, it is the same."""
        if not self._page:
            token = self._environ.get(TOKEN, "")
            if not is_loopback(address.host) and not token:
                message = f"`--inspect {address}` would show rows to everyone who reaches this machine"
                raise UsageError([Diagnostic("MS188", message, help=f"set a token: `{TOKEN}=… millstream run …`, or use 127.0.0.1")])
            if 0 < len(token) < _SHORTEST:
                raise UsageError([Diagnostic("MS188", f"`{TOKEN}` is easy to guess", help=f"take at least {_SHORTEST} characters")])
            token = token or secrets.token_urlsafe(24)
            listener = _listen(address)
            self._serve(listener, Access(token, address.host))
            host = f"[{address.host}]" if ":" in address.host else address.host
            self._page = f"http://{host}:{listener.getsockname()[1]}/#{quote(token)}"
            if self._socket:
                self._register()
        return self._page

    def close(self) -> None:
        self._run.ended.set()
        with self._run.saving:  # a copy that has begun is finished while the lease is held
            pass
        for push in self._pushes:
            push.close()
        for server in self._servers:
            server.begin_closing()
        for server in self._servers:
            server.close()
        if self._socket:
            registration.forget(self._socket)

    def _serve(self, listener: socket.socket, access: Access) -> None:
        self._servers.append(Server(self._run, listener, access, self.open_page))
        self._servers[-1].start()

    def _register(self) -> None:
        run, url = self._run, self._page.partition("#")[0]
        registration.register(Registration(run.name, os.getpid(), run.run, run.checkpoint.storage.url, run.began, self._socket, url))


def _listen(address: InspectAddress) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except OSError as error:
        listener.close()
        message = f"the inspector cannot listen on {address}: {error.strerror or error}"
        raise UsageError([Diagnostic("MS188", message, help="name another port, or none: `--inspect` takes a free one")]) from None
    listener.listen(128)
    return listener
