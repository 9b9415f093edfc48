"""Rows per second that can be read: averaged over ten seconds, or over the last two epochs where those take longer.

Counts grow when epochs end. The growth since the last look is mostly nothing, and now and then far too much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

WINDOW = 10.0
"""Seconds."""
_KEPT = 3
"""Marks that stay whatever their age: the last two epochs, and where they began."""


class Rates:
    """Counts by node, each time that they have grown."""

    def __init__(self) -> None:
        self._marks: dict[str, deque[tuple[float, int]]] = {}

    def add(self, counts: Mapping[str, int], now: float) -> None:
        for name, count in counts.items():
            marks = self._marks.setdefault(name, deque([(now, count)]))
            if count != marks[-1][1]:
                marks.append((now, count))
            while len(marks) > _KEPT and now - marks[1][0] > WINDOW:
                marks.popleft()

    def of(self, name: str, now: float) -> float:
        """0 when nothing has come for longer than usual."""
        marks = self._marks.get(name)
        if marks is None or len(marks) < 2:
            return 0.0
        (last, count), (before, _), (since, first) = marks[-1], marks[-2], marks[0]
        silent = now - last > max(WINDOW, 2 * (last - before))
        return 0.0 if silent or now <= since else (count - first) / (now - since)
