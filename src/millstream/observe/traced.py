"""The traced records of finished epochs, until the thread that sends traces takes them.

They are no events: they may show what users have in their records, and there can be many.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

_CHARACTERS = 32_000_000
"""What waits is dropped beyond this, the oldest epochs first."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A traced record has passed a node."""

    node: str
    nanos: int
    """Since 1970, by the clock of the machine that computed it."""
    traceparent: str
    parent: str
    """The context that came with the record; empty when it came with none."""
    payload: str
    """The beginning of the record as JSON; empty unless it is wanted."""


@dataclass(slots=True)
class TracedRecords:
    """The lines of each epoch. It is thread-safe."""

    _waiting: deque[tuple[str, int, str]] = field(default_factory=deque)
    _characters: int = 0
    _lost: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, query: str, epoch: int, lines: str) -> None:
        with self._lock:
            self._waiting.append((query, epoch, lines))
            self._characters += len(lines)
            while self._characters > _CHARACTERS:
                self._characters -= len(self._waiting.popleft()[2])
                self._lost += 1

    def take(self) -> tuple[dict[tuple[str, int], list[Passage]], int]:
        """(query, epoch) → its passages, and how many epochs were lost since the last call."""
        with self._lock:
            found, lost = list(self._waiting), self._lost
            self._waiting.clear()
            self._characters = self._lost = 0
        return {(query, epoch): [_passage(line) for line in lines.split("\n") if line] for query, epoch, lines in found}, lost


def _passage(line: str) -> Passage:
    node, nanos, traceparent, parent, payload = line.split("\t", 4)
    return Passage(node, int(nanos), traceparent, parent, payload)
