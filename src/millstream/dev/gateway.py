"""A JVM that serves until Python ends: started with a class path, driven through py4j, gone when its standard input closes.

The server inside is started by calling it, not by its `main`. So starting returns when clients can connect, and nothing polls. The
pipe closes with Python, whichever way Python goes, and the JVM with the pipe.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from millstream.errors import Diagnostic, SetupError
from millstream.jvm.java import Java
from millstream.jvm.scratch import Scratch

_SMALL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_GATEWAY = ("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0")
_TAIL = 12


@dataclass
class Gateway:
    """One JVM, before its start, while it runs and after its end."""

    java: Java
    jars: tuple[Path, ...]
    flags: tuple[str, ...]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    entry: Any = field(default=None, repr=False)
    """py4j's side of it."""

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def jvm(self) -> Any:
        return self.entry.jvm

    def launch(self) -> bool:
        """Whether the JVM has come up."""
        from py4j.java_gateway import GatewayParameters, JavaGateway

        path = os.pathsep.join(map(str, self.jars))
        command: list[str | Path] = [self.java.executable, *_SMALL, *self.flags, "-cp", path, *_GATEWAY]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True, cwd=self.log.parent
            )
        assert self.process.stdout is not None
        port, secret = self.process.stdout.readline().strip(), self.process.stdout.readline().strip()
        if not port.isdigit():
            self.end()
            return False
        self.entry = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=secret.decode()))
        return True

    def texts(self, words: Sequence[str]) -> Any:
        """An array of Java's strings."""
        array = self.entry.new_array(self.jvm.String, len(words))
        for index, word in enumerate(words):
            array[index] = word
        return array

    def kill(self) -> None:
        """Like `kill -9`: nothing is flushed, clients are not informed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> None:
        if self.entry is not None:
            with suppress(Exception):  # a dead JVM cannot be closed
                self.entry.close(keep_callback_server=True)
            self.entry = None
        if self.process is None:
            return
        process, self.process = self.process, None
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def tail(self) -> str:
        """The last lines of the log, without Java's stack."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if not line.startswith("\tat ")]
        return "\n".join(lines[-_TAIL:])


@dataclass
class Server:
    """Something that serves from a JVM: it can be started, it ends with its data."""

    java: Java
    jars: tuple[Path, ...]
    scratch: Scratch
    port: int

    name: ClassVar[str]
    """What people call it."""

    @cached_property
    def gateway(self) -> Gateway:
        raise NotImplementedError

    @property
    def running(self) -> bool:
        return self.gateway.running

    def serve(self) -> None:
        """What makes the JVM answer clients."""
        raise NotImplementedError

    def start(self) -> None:
        """Start, or start again; returns when clients can connect."""
        if not self.gateway.launch():
            raise SetupError(self._failure("its JVM ended before it was ready"))
        try:
            self.serve()
        except Exception as error:  # noqa: BLE001 — whatever Java says is told
            said = reason(error)
            self.gateway.end()
            raise SetupError(self._failure(said)) from None

    def stop(self) -> None:
        """End it and remove its data."""
        self.gateway.end()
        self.scratch.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _failure(self, said: str) -> Diagnostic:
        message = f"{self.name} did not start: {said}"
        return Diagnostic("MS047", message, detail=self.gateway.tail(), help="`millstream doctor` checks the machine")


def reason(error: Exception) -> str:
    """The first line of the innermost Java exception."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return str(error).partition("\n")[0]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.toString()).partition("\n")[0]
