"""Durations by size, as Prometheus counts them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many durations lie between two bounds, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total: float = 0.0

    def plus(self, seconds: float) -> Histogram:
        place = bisect_left(BOUNDS, seconds)
        return Histogram((*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :]), self.total + seconds)

    def cumulated(self) -> list[tuple[str, int]]:
        """Bound → durations up to it."""
        found, count = [], 0
        for bound, own in zip([*map(repr, BOUNDS), "+Inf"], self.counts, strict=True):
            count += own
            found.append((bound, count))
        return found
