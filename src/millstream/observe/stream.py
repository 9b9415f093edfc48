"""The stream of a run's events, and its readers.

Publishing never waits: each reader has a buffer of limited size, from which the oldest events go when it is full. The reader learns how
many it has lost. So a reader that stalls costs an append per event, and no more memory than its buffer.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from millstream.observe.events import Event

CAPACITY = 2_000
"""Events that wait for a reader."""


@dataclass(slots=True, eq=False)
class Reader:
    """One reader's buffer. `take` may be called from another thread than `publish`."""

    capacity: int = CAPACITY
    _waiting: deque[Event] = field(default_factory=deque)
    _lost: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, event: Event) -> None:
        with self._lock:
            if len(self._waiting) >= self.capacity:
                self._waiting.popleft()
                self._lost += 1
            self._waiting.append(event)

    def take(self) -> tuple[list[Event], int]:
        """The events since the last call, and how many of them were lost before the first one."""
        with self._lock:
            found, lost = list(self._waiting), self._lost
            self._waiting.clear()
            self._lost = 0
        return found, lost


class EventStream:
    """Passes events to all readers."""

    def __init__(self) -> None:
        self._readers: tuple[Reader, ...] = ()
        self._lock = threading.Lock()

    @property
    def readers(self) -> int:
        return len(self._readers)

    def open(self, capacity: int = CAPACITY) -> Reader:
        """A new reader. It gets the events from now on; `close` ends that."""
        reader = Reader(capacity)
        with self._lock:
            self._readers = (*self._readers, reader)
        return reader

    def close(self, reader: Reader) -> None:
        with self._lock:
            self._readers = tuple(each for each in self._readers if each is not reader)

    def publish(self, event: Event) -> None:
        for reader in self._readers:
            reader.put(event)
