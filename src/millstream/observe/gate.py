"""The gate that every epoch of a run passes before it begins.

While it is closed no epoch begins. Those that run come to their end, and then nothing writes to a target: a pause, or the moment in which a
copy of the checkpoint is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_TICK = 0.05


class Gate:
    """Closed by as many as want it closed; open when the last of them has opened it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._closed = 0
        self._paused = False
        self._inside = 0

    @property
    def is_paused(self) -> bool:
        return self._paused

    def pause(self) -> None:
        with self._changed:
            self._closed += not self._paused
            self._paused = True

    def resume(self) -> None:
        with self._changed:
            self._closed -= self._paused
            self._paused = False
            self._changed.notify_all()

    @contextmanager
    def closed(self, seconds: float) -> Iterator[bool]:
        """Keep epochs from beginning in the body. The value says whether the running ones have ended within this time."""
        with self._changed:
            self._closed += 1
        try:
            with self._changed:
                ended = self._changed.wait_for(lambda: not self._inside, seconds)
            yield ended
        finally:
            with self._changed:
                self._closed -= 1
                self._changed.notify_all()

    @contextmanager
    def passed(self, given_up: Callable[[], bool]) -> Iterator[bool]:
        """An epoch, or anything else that may not happen during a copy: wait until the gate is open. False when `given_up` came true
        meanwhile: it must not begin.
        """
        with self._changed:
            while self._closed and not given_up():
                self._changed.wait(_TICK)
            begins = not self._closed
            self._inside += begins
        try:
            yield begins
        finally:
            with self._changed:
                self._inside -= begins
                self._changed.notify_all()
