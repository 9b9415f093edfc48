"""Starts the JVM.

Spark's own way from Python runs a shell script, which runs a JVM to compute a command line, which runs the JVM; Python waits for all of it.
Here the process is started directly, and Python continues (it imports PySpark meanwhile). The JVM answers with a handshake file that
contains the port and secret of its gateway.
It runs in its own session, so that Ctrl-C in the terminal reaches only Python. It reads its standard input and ends when that closes, which
happens whenever Python ends. Its log and its output go to files.
"""

from __future__ import annotations

import os
import struct
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.clients.storage import make_private
from millstream.errors import Diagnostic, SetupError
from millstream.jvm.arguments import JvmOptions, write_arguments
from millstream.jvm.log import without_stacks
from millstream.jvm.scratch import Scratch

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

START_TIMEOUT = 60.0
_TAIL = 15
_OUTPUT = "jvm.out"
"""The JVM's own output. Log4j writes the log and rotates it by size."""


@dataclass(frozen=True, slots=True)
class Jvm:
    """A started JVM and its files."""

    process: subprocess.Popen[bytes]
    scratch: Scratch
    log: Path

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def connect(self, timeout: float = START_TIMEOUT) -> JavaGateway:
        """Wait for the gateway and connect to it."""
        handshake = self.scratch.path / "handshake"
        deadline = time.monotonic() + timeout
        while not handshake.exists():
            if not self.alive:
                raise SetupError(self._failure(f"the JVM ended with code {self.process.returncode} before it was ready"))
            if time.monotonic() > deadline:
                raise SetupError(self._failure(f"the JVM did not answer in {timeout:g} s"))
            time.sleep(0.005)
        answer = handshake.read_bytes()
        for secret in ("handshake", "jvm.args", "spark.properties"):
            (self.scratch.path / secret).unlink(missing_ok=True)
        port, size = struct.unpack("!ii", answer[:8])
        return _gateway(port, answer[8 : 8 + size].decode())

    def close(self, patience: float = 0.0) -> None:
        """End the JVM and remove its scratch space; `patience` is how long it may take to end by itself."""
        self._end(patience)
        self.scratch.remove()

    def _end(self, patience: float = 0.0) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        """The end of the log, without stack traces."""
        lines: list[str] = []
        for log in (self.log, self.log.with_name(_OUTPUT)):
            with suppress(OSError):
                lines += without_stacks(log.read_text(errors="replace"))
        return "\n".join(lines[-_TAIL:])

    def _failure(self, message: str) -> Diagnostic:
        self._end()
        return Diagnostic("MS044", message, detail=self.last_words(), help="`millstream doctor` checks the machine")


def start_jvm(options: JvmOptions) -> Jvm:
    """Start the JVM and return at once."""
    folder = options.scratch.path
    log = _fresh_log(options.log_dir or folder)
    arguments = write_arguments(options, log.parent)
    own = {"SPARK_HOME": str(options.spark.home), "_PYSPARK_DRIVER_CONN_INFO_PATH": str(folder / "handshake")}
    with log.with_name(_OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            [options.java.executable, f"@{arguments}"],
            env={**os.environ, **options.environment, **own},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Jvm(process, options.scratch, log)


def _fresh_log(folder: Path) -> Path:
    """The path of a new `jvm.log`; the log and output of the previous run are kept next to it."""
    make_private(folder.parent)
    make_private(folder)
    for name in ("jvm.log", _OUTPUT):
        with suppress(FileNotFoundError):
            (folder / name).replace(folder / name.replace("jvm.", "jvm.previous."))
    return folder / "jvm.log"


def _gateway(port: int, secret: str) -> JavaGateway:
    """PySpark's own connection, with its Java imports; it reads the address only from the environment."""
    from pyspark import java_gateway

    address = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    try:
        os.environ.update(address)
        return java_gateway.launch_gateway()  # type: ignore[no-untyped-call]  # PySpark leaves it untyped
    finally:
        for name in address:
            del os.environ[name]
