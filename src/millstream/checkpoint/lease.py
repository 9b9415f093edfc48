"""The lease: one run at a time uses a checkpoint. A second run is refused with the process and host of the first.

Locally the lease is a file lock, which the system releases when the process dies. On other file systems it is a numbered put-once file
(`Heartbeat`); a run that was replaced while it was paused stops.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from millstream.clients.storage import LocalStorage, Storage, make_private
from millstream.errors import Diagnostic, RunError


class Lease(Protocol):
    """Held until released."""

    def release(self) -> None: ...
    def lost_to(self) -> str: ...


def take(storage: Storage, checkpoint: str) -> Lease:
    """The lease, or a RunError that names its holder."""
    if isinstance(storage, LocalStorage):
        return _FileLock.take(storage, checkpoint)
    return Heartbeat.take(storage, checkpoint, Pace())


@contextmanager
def writable(checkpoint: str) -> Iterator[None]:
    """Report a place that cannot be written as a diagnostic."""
    try:
        yield
    except OSError as error:
        message = f"the checkpoint cannot be written to `{checkpoint}`: {error.strerror}"
        raise RunError(Diagnostic("MS061", message, help="set another path with `settings.checkpoint` or `--checkpoint`")) from None


@dataclass
class _FileLock:
    descriptor: int

    @classmethod
    def take(cls, storage: LocalStorage, checkpoint: str) -> _FileLock:
        with writable(checkpoint):
            make_private(storage.root)
            if (storage.root / "lock").exists():  # an older version made the lock readable by all users
                with suppress(PermissionError):
                    storage.root.chmod(0o700)
            descriptor = os.open(storage.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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

    def lost_to(self) -> str:
        """Always empty: the system never takes a lock from a living process."""
        return ""


@dataclass(frozen=True, slots=True)
class Pace:
    """The interval of heartbeats, and how long a new run waits for a missing one, in seconds."""

    beat: float = 10.0
    stale: float = 60.0


class Heartbeat:
    """A lease on a file system that only has put-once.

    Each owner puts `lock-<number>` once, with the number after the newest: one of several starters succeeds, and the newest number owns the
    checkpoint. The owner rewrites `beat-<number>` regularly. A new run takes over when that file has not changed while it watched (so no
    clocks are compared), or at once when the owner was a dead process of this machine. With each beat the owner checks that its number is
    still the newest and the file still its own: on object stores a rename can replace a file that another starter put at the same moment.
    Without a successful beat for half the time that others wait, the owner may have lost the lease without knowing it, and treats it as
    lost.
    """

    def __init__(self, storage: Storage, number: int, holder: bytes, pace: Pace) -> None:
        self._storage, self._number, self._holder, self._pace = storage, number, holder, pace
        self._stop, self._beaten, self._loser_to = threading.Event(), time.monotonic(), ""
        _held.add((storage.url, number))
        self._verify()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="lease")
        self._thread.start()

    @classmethod
    def take(cls, storage: Storage, checkpoint: str, pace: Pace) -> Heartbeat:
        newest = _newest(storage)
        if newest and not _is_abandoned(storage, newest, pace):
            raise RunError(_in_use(checkpoint, storage.read(f"lock-{newest}") or b""))
        holder = _holder()
        if not storage.put_once(f"lock-{newest + 1}", holder):
            raise RunError(_in_use(checkpoint, storage.read(f"lock-{newest + 1}") or b""))
        for name in storage.names():
            if _number(name) and _number(name) < newest:  # the previous one stays, so that a paused owner finds a newer one
                storage.delete(name)
        lease = cls(storage, newest + 1, holder, pace)
        if lease.lost_to():  # this run itself was paused meanwhile
            raise RunError(_in_use(checkpoint, storage.read(f"lock-{_newest(storage)}") or b""))
        return lease

    def release(self) -> None:
        self._stop.set()
        self._thread.join(self._pace.beat)  # a beat after the release would hide the release
        _held.discard((self._storage.url, self._number))
        with suppress(Exception):  # if the release fails, the missing heartbeat shows it
            if _newest(self._storage) == self._number:
                self._storage.put(f"beat-{self._number}", _RELEASED)

    def lost_to(self) -> str:
        """The new owner, or that the lease may be lost; empty while it is held. Reads the file system only after a long pause."""
        if not self._loser_to and time.monotonic() - self._beaten > self._pace.stale / 2:
            self._verify()
        return self._loser_to

    def _beat(self) -> None:
        while not self._stop.wait(self._pace.beat):
            self._verify()

    def _verify(self) -> None:
        try:
            newest = _newest(self._storage)
            holder = self._storage.read(f"lock-{newest}") or b""
            if newest != self._number or holder != self._holder:
                self._loser_to = _describe(holder)
            elif not self._stop.is_set():
                self._show()
                self._beaten = time.monotonic()
        except Exception as error:  # noqa: BLE001 — whatever the file system raises, the lease could not be renewed
            if time.monotonic() - self._beaten > self._pace.stale / 2:
                self._loser_to = f"unknown: the lease could not be renewed ({error})"

    def _show(self) -> None:
        self._storage.put(f"beat-{self._number}", json.dumps({"beat": uuid.uuid4().hex}).encode())


_RELEASED = b"released"
_held: set[tuple[str, int]] = set()
"""The leases of this process. One that it released, but could not mark as released because its JVM was dead, is free."""


def _newest(storage: Storage) -> int:
    return max((_number(name) for name in storage.names() if name.startswith("lock-")), default=0)


def _number(name: str) -> int:
    kind, _, number = name.partition("-")
    return int(number) if kind in {"lock", "beat"} and number.isdigit() else 0


def _is_abandoned(storage: Storage, number: int, pace: Pace) -> bool:
    """Whether the owner has released the lease, is a dead process of this host, or shows no heartbeat while we watch."""
    before, who = storage.read(f"beat-{number}"), _details(storage.read(f"lock-{number}") or b"")
    if before == _RELEASED or (who.get("machine") == _machine() and not _alive(who.get("pid"), (storage.url, number))):
        return True
    deadline = time.monotonic() + pace.stale
    while time.monotonic() < deadline:
        time.sleep(min(1.0, pace.beat / 2))
        if (now := storage.read(f"beat-{number}")) != before:
            return now == _RELEASED
    return True


def _alive(pid: object, lease: tuple[str, int]) -> bool:
    """Whether a process of this machine still holds a lease."""
    return lease in _held if pid == os.getpid() else Path(f"/proc/{pid}").exists()


def _machine() -> str:
    """The boot and the process namespace of a process id; containers may share a host name."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return uuid.uuid4().hex


def _holder() -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "machine": _machine(), "lease": uuid.uuid4().hex}).encode()


def _details(holder: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(holder)
    except ValueError:
        return {}
    return found


def _in_use(checkpoint: str, holder: bytes) -> Diagnostic:
    message = f"the checkpoint `{checkpoint}` is in use by {_describe(holder)}"
    return Diagnostic("MS050", message, help="stop that run, or use another `settings.checkpoint`")


def _describe(holder: bytes) -> str:
    who = _details(holder)
    return f"process {who['pid']} on host {who['host']}" if "pid" in who else "another run"
