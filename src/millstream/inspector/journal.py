"""Writes the events of a run to its history, in a thread of its own: no epoch waits for it."""

from __future__ import annotations

import threading
from contextlib import suppress

from millstream.checkpoint.history import History
from millstream.clients.storage import is_local
from millstream.inspector.attended import AttendedRun
from millstream.observe.events import Noted
from millstream.observe.stream import Reader

_LOCAL_SECONDS, _REMOTE_SECONDS = 2.5, 30.0
_MEASURE_SECONDS = 5.0
_CAPACITY = 20_000


class Journal:
    """Collects and writes. Failing to write ends the history, and not the run."""

    def __init__(self, run: AttendedRun) -> None:
        self._run, self._history = run, run.history()
        self._pause = _LOCAL_SECONDS if is_local(run.checkpoint.storage.url) else _REMOTE_SECONDS
        self._reader: Reader = run.recorder.events.open(_CAPACITY)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True, name="history")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write what is left."""
        self._ending.set()
        self._thread.join(self._pause)
        self._run.recorder.events.close(self._reader)

    def _write(self) -> None:
        with suppress(Exception):  # a full disk; or the JVM is dead that writes to another file system
            measured = 0.0
            while True:
                ended = self._wait()
                measured += self._pause
                if ended or measured >= _MEASURE_SECONDS:
                    self._run.recorder.measure()
                    measured = 0.0
                self._flush(self._history)
                if ended:
                    return

    def _wait(self) -> bool:
        """Wait for the next time to write. Whether the run has ended."""
        for _ in range(round(self._pause / _LOCAL_SECONDS)):
            if self._ending.wait(_LOCAL_SECONDS):
                return True
            self._run.count_rates()
        return False

    def _flush(self, history: History) -> None:
        found, lost = self._reader.take()
        if lost:
            history.add([Noted(message=f"{lost} events are missing here: they came faster than they could be written")])
        history.add(found)
        history.flush()
