"""One owner: a checkpoint is leased by the run that uses it, and a second run is refused with the first one's process and host.

Locally the lease is a file lock: the system lets go of it when the process dies, however it dies. On other file systems it is a
numbered file put once (`Heartbeat`); a run that was replaced while it was paused stops.
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
    def lost(self) -> str: ...


def take(storage: Storage, checkpoint: str) -> Lease:
    """The lease, or a RunError that names its holder."""
    if isinstance(storage, LocalStorage):
        return _FileLock.take(storage, checkpoint)
    return Heartbeat.take(storage, checkpoint, Pace())


@contextmanager
def writable(checkpoint: str) -> Iterator[None]:
    """A place where nothing can be made is told as such."""
    try:
        yield
    except OSError as error:
        message = f"progress cannot be kept in `{checkpoint}`: {error.strerror}"
        raise RunError(Diagnostic("MS061", message, help="`settings.checkpoint`, or `--checkpoint`, names another place")) from None


@dataclass
class _FileLock:
    descriptor: int

    @classmethod
    def take(cls, storage: LocalStorage, checkpoint: str) -> _FileLock:
        with writable(checkpoint):
            make_private(storage.root)
            if (storage.root / "lock").exists():  # a checkpoint of an older version could be read by everybody
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

    def lost(self) -> str:
        """The system takes a lock from nobody who lives."""
        return ""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often an owner shows that it lives, and how long a silent one is waited for, in seconds."""

    beat: float = 10.0
    stale: float = 60.0


class Heartbeat:
    """A lease on a file system that only has put-once.

    Each owner puts `lock-<number>` once, with the number after the newest there is: of several starters one succeeds, and the newest number
    owns the checkpoint. The owner writes `beat-<number>` again and again. A newcomer takes over when that file has not changed while it
    watched, so that no clock is compared with another; or at once when the owner was a process of this machine that is gone. With each beat
    the owner looks whether its number is still the newest, and the file still its own: on object stores a rename replaces a file that
    another starter has put at the same moment. Without a successful beat for half the time that others wait, it may have lost the lease
    without knowing, and counts as such.
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
        if newest and not _abandoned(storage, newest, pace):
            raise RunError(_in_use(checkpoint, storage.read(f"lock-{newest}") or b""))
        holder = _holder()
        if not storage.put_once(f"lock-{newest + 1}", holder):
            raise RunError(_in_use(checkpoint, storage.read(f"lock-{newest + 1}") or b""))
        for name in storage.names():
            if _number(name) and _number(name) < newest:  # the one before stays, so that a paused owner finds a newer one
                storage.delete(name)
        lease = cls(storage, newest + 1, holder, pace)
        if lease.lost():  # the starter itself was paused meanwhile
            raise RunError(_in_use(checkpoint, storage.read(f"lock-{_newest(storage)}") or b""))
        return lease

    def release(self) -> None:
        self._stop.set()
        self._thread.join(self._pace.beat)  # a beat after the release would hide it
        _held.discard((self._storage.url, self._number))
        with suppress(Exception):  # who is gone leaves nothing to others but a silent beat
            if _newest(self._storage) == self._number:
                self._storage.put(f"beat-{self._number}", _RELEASED)

    def lost(self) -> str:
        """Who has the lease now, or that it may be lost; empty while it is held. Asks the file system only after a long silence."""
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
                self._loser_to = _named(holder)
            elif not self._stop.is_set():
                self._show()
                self._beaten = time.monotonic()
        except Exception as error:  # noqa: BLE001 — whatever the file system raises, the lease could not be renewed
            if time.monotonic() - self._beaten > self._pace.stale / 2:
                self._loser_to = f"whoever has taken it: the lease could not be renewed ({error})"

    def _show(self) -> None:
        self._storage.put(f"beat-{self._number}", json.dumps({"beat": uuid.uuid4().hex}).encode())


_RELEASED = b"released"
_held: set[tuple[str, int]] = set()
"""The leases of this process: one that it has released, and could not say so because its JVM was gone, is free all the same."""


def _newest(storage: Storage) -> int:
    return max((_number(name) for name in storage.names() if name.startswith("lock-")), default=0)


def _number(name: str) -> int:
    kind, _, number = name.partition("-")
    return int(number) if kind in {"lock", "beat"} and number.isdigit() else 0


def _abandoned(storage: Storage, number: int, pace: Pace) -> bool:
    """Whether an owner has released the lease, is a dead process of this host, or stays silent while one watches."""
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
    """Whether a process of this machine still has a lease."""
    return lease in _held if pid == os.getpid() else Path(f"/proc/{pid}").exists()


def _machine() -> str:
    """The boot and the process namespace that a process id belongs to; containers may share the name of a host."""
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
    message = f"the checkpoint `{checkpoint}` is in use by {_named(holder)}"
    return Diagnostic("MS050", message, help="stop that run, or use another `settings.checkpoint`")


def _named(holder: bytes) -> str:
    who = _details(holder)
    return f"process {who['pid']} on host {who['host']}" if "pid" in who else "another run"
