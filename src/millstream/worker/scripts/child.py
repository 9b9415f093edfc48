"""The engine `deno`: one child process without permissions, which lives as long as the worker and is spoken to in frames.

The child has V8's speed. Its heap is limited by V8 and its data by the operating system, and a child that does not answer in time is
killed. It cannot say where it was when it was killed, so a batch is repeated with `traced`: the child then tells every row before it
begins with it.
"""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

from millstream.worker.scripts.engines import LimitError, Limits, MissingEngineError, StartError

_HEAD = "<BI"
_START, _CALL, _TRACED = ord("s"), ord("c"), ord("t")
_ANSWER, _ROW = ord("r"), ord("p")
_LEAST = 64
"""Deno does not start with a heap of much fewer megabytes."""
_ROOM = 128 << 20
"""What V8 may map for itself while it works, beside the heap of the script."""
_START_SECONDS = 10
_THREADS = 4
"""How much CPU time V8's own threads may use beside that of the script, in calls as long as the limit."""
_FLAGS = ("--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-lock", "--quiet")


def find_deno() -> str:
    """The program of the package `deno`."""
    beside = Path(sys.executable).with_name("deno")
    try:
        from deno import find_deno_bin
    except ImportError:
        if beside.is_file():
            return str(beside)
        raise MissingEngineError("no module named deno") from None
    return str(find_deno_bin())


class Child:
    """One Deno process with a script in it."""

    def __init__(self, prelude: str, main: str, options: str, limits: Limits) -> None:
        code = f"const start = {prelude};\n{main}"
        address = "data:application/javascript;base64," + base64.b64encode(code.encode()).decode()
        heap = f"--v8-flags=--max-old-space-size={max(_LEAST, limits.memory >> 20)},--no-wasm-async-compilation"
        start = Limits(limits.seconds + _START_SECONDS, limits.memory)
        with tempfile.TemporaryDirectory(prefix="millstream-deno-", ignore_cleanup_errors=True) as folder:
            self._process = _run([find_deno(), "run", *_FLAGS, heap, address], folder)
            self._input, self._output = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
            try:
                _limit(self._process.pid, "RLIMIT_CORE", 0)
                self._answer(start, lambda: None)
                if held := _data_of(self._process.pid):
                    _limit(self._process.pid, "RLIMIT_DATA", held + max(_LEAST << 20, limits.memory) + _ROOM)
                self._ask(_START, options, start)
            except BaseException:
                self.close()
                raise

    @property
    def spent(self) -> bool:
        return False

    @property
    def full(self) -> bool:
        return False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, request: str, limits: Limits, *, traced: bool = False) -> str:
        return self._ask(_TRACED if traced else _CALL, request, limits)

    def close(self) -> None:
        self._process.kill()
        for end in (self._input, self._output):
            with suppress(OSError):
                end.close()
        self._process.wait()

    def _ask(self, kind: int, text: str, limits: Limits) -> str:
        data = text.encode()

        def send() -> None:
            self._input.write(struct.pack(_HEAD, kind, len(data)))
            self._input.write(data)
            self._input.flush()

        return self._answer(limits, send)

    def _answer(self, limits: Limits, send: Callable[[], None]) -> str:
        """What the child says to what it is sent."""
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        self._limit_cpu(limits.seconds)
        timer = threading.Timer(limits.seconds, stop)
        timer.start()
        row: int | None = None
        try:
            send()
            while True:
                answer, size = struct.unpack(_HEAD, self._read(struct.calcsize(_HEAD)))
                if size > limits.memory:
                    raise EOFError
                body = self._read(size)
                if answer != _ROW:
                    break
                row = int(struct.unpack("<I", body)[0])
        except (EOFError, OSError):
            raise LimitError("time" if late.is_set() else "memory", row) from None
        finally:
            timer.cancel()
        if answer != _ANSWER:
            raise StartError(body.decode(errors="replace"))
        return body.decode()

    def _limit_cpu(self, seconds: float) -> None:
        """A child whose worker was killed in the middle of a call is stopped by nobody else."""
        with suppress(OSError, IndexError, ValueError):
            parts = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            spent = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
            _limit(self._process.pid, "RLIMIT_CPU", int(spent + _THREADS * seconds) + 2)

    def _read(self, size: int) -> bytes:
        data = self._output.read(size)
        if len(data) < size:
            raise EOFError
        return data


def _run(command: list[str], folder: str) -> subprocess.Popen[bytes]:
    """The process. It needs the folder while it starts only: Spark's workers end in a way in which nothing could delete it later."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"DENO_DIR": folder, "HOME": folder, "NO_COLOR": "1", "TZ": "UTC", "DENO_NO_UPDATE_CHECK": "1"},
        start_new_session=True,
    )


def _limit(pid: int, name: str, size: int) -> None:
    """Let the operating system bound a child: its data, which has array buffers beside V8's heap, and its time. Linux only."""
    import resource

    limit: Any = getattr(resource, "prlimit", None)
    if limit is not None:
        kind = getattr(resource, name)
        with suppress(OSError, ValueError):
            limit(pid, kind, (size, resource.RLIM_INFINITY if name == "RLIMIT_CPU" else size))


def _data_of(pid: int) -> int:
    """How much data a process has mapped, in bytes; 0 where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:")), 0)
    except (OSError, ValueError, IndexError):
        return 0
