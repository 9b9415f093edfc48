"""Rows per second, averaged over ten seconds, or over the last two epochs if those take longer.

Counts grow only when an epoch ends. A rate over a shorter time would be 0 most of the time, and far too high in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

WINDOW = 10.0
"""Seconds."""
_KEPT = 3
"""Points that are kept at any age: the ends of the last two epochs, and the start of the first of them."""


class Rates:
    """The points in time at which the count of a node has grown."""

    def __init__(self) -> None:
        self._points: dict[str, deque[tuple[float, int]]] = {}

    def add(self, counts: Mapping[str, int], now: float) -> None:
        for name, count in counts.items():
            points = self._points.setdefault(name, deque([(now, count)]))
            if count != points[-1][1]:
                points.append((now, count))
            while len(points) > _KEPT and now - points[1][0] > WINDOW:
                points.popleft()

    def of(self, name: str, now: float) -> float:
        """The rate of a node; 0 when its count has not grown for longer than usual."""
        points = self._points.get(name)
        if points is None or len(points) < 2:
            return 0.0
        (last, count), (before, _), (since, first) = points[-1], points[-2], points[0]
        idle = now - last > max(WINDOW, 2 * (last - before))
        return 0.0 if idle or now <= since else (count - first) / (now - since)
