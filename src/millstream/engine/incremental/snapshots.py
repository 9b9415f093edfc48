"""Writes snapshots beside the epochs, one at a time. A failure is kept for the query's thread, and no epoch depends on it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SnapshotWriter:
    """The thread that writes, and how its last snapshot ended."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, write: Callable[[], None]) -> None:
        """Begin a snapshot; call it only after `take` has returned the end of the one before."""
        self._thread = threading.Thread(target=self._run, args=(write,), name="millstream-snapshot", daemon=True)
        self._thread.start()

    def _run(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 — whatever Spark or the storage raises: the log still has all changes
            self._failure = error

    def take(self) -> tuple[bool, Exception | None]:
        """Whether a snapshot has ended since the last call, and why it failed if it did."""
        if self._thread is None or self._thread.is_alive():
            return False, None
        failure, self._thread, self._failure = self._failure, None, None
        return True, failure

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
