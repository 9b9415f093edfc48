"""One owner: a checkpoint is leased by the run that uses it, and a second run is refused with the first one's process and host.

Locally the lease is a file lock: the system lets go of it when the process dies, however it dies. On other file systems it is a
file put once and touched every few seconds; one that nobody has touched for a minute is taken over.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.clients.storage import LocalStorage, Storage
from millstream.errors import Diagnostic, RunError

_BEAT_SECONDS = 10.0
_STALE_SECONDS = 60.0


class Lease(Protocol):
    """Held until released."""

    def release(self) -> None: ...


def take(storage: Storage, checkpoint: str) -> Lease:
    """The lease, or a RunError that names its holder."""
    if isinstance(storage, LocalStorage):
        return _FileLock.take(storage, checkpoint)
    return _Heartbeat.take(storage, checkpoint)


@dataclass
class _FileLock:
    descriptor: int

    @classmethod
    def take(cls, storage: LocalStorage, checkpoint: str) -> _FileLock:
        storage.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(storage.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 4096, 0)
            os.close(descriptor)
            raise RunError(_in_use(checkpoint, holder)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _holder(), 0)
        return cls(descriptor)

    def release(self) -> None:
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)


class _Heartbeat:
    def __init__(self, storage: Storage) -> None:
        self._storage, self._stop = storage, threading.Event()
        threading.Thread(target=self._beat, daemon=True, name="lease").start()

    @classmethod
    def take(cls, storage: Storage, checkpoint: str) -> _Heartbeat:
        if not storage.put_once("lock", _holder()):
            held = storage.read("lock") or b""
            if time.time() - _details(held).get("beat", 0) < _STALE_SECONDS:
                raise RunError(_in_use(checkpoint, held))
            storage.put("lock", _holder())
        return cls(storage)

    def release(self) -> None:
        self._stop.set()
        self._storage.delete("lock")

    def _beat(self) -> None:
        while not self._stop.wait(_BEAT_SECONDS):
            self._storage.put("lock", _holder())


def _holder() -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "beat": time.time()}).encode()


def _details(holder: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(holder)
    except ValueError:
        return {}
    return found


def _in_use(checkpoint: str, holder: bytes) -> Diagnostic:
    who = _details(holder)
    process = f"process {who['pid']} on host {who['host']}" if "pid" in who else "another run"
    return Diagnostic(
        "MS050", f"the checkpoint `{checkpoint}` is in use by {process}", help="stop that run, or use another `settings.checkpoint`"
    )
