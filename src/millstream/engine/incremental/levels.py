"""Which fragments of a store are merged.

The fragments of some epochs become one, and older results of merging join them while they are not more than twice as large. So a large
store is not written again for a few rows: a row is merged as often as the size of the store doubles. Merging large fragments of a store
that only grows would save nothing: there are just fewer of them afterwards, so they wait longer.
"""

from __future__ import annotations

import math

from millstream.sql.catalyst.bridge import Rdd

_LARGE_ROWS = 100_000
_MOST_LARGE = 100


class Levels:
    """The sizes of fragments."""

    def __init__(self) -> None:
        self._fresh: dict[int, float] = {}
        """The id of a fragment that an epoch has added → its rows; infinite if they are not known."""
        self._merged: dict[int, int] = {}
        """The id of a fragment that was merged or restored → its rows."""

    def add(self, fragment: Rdd, rows: int | None) -> None:
        """An epoch has added a fragment."""
        self._fresh[int(fragment.id())] = math.inf if rows is None else rows

    def rows_of(self, fragments: tuple[Rdd, ...]) -> int:
        """The rows of fragments, as far as they are known."""
        known = self._fresh | self._merged
        return sum(int(rows) for fragment in fragments if math.isfinite(rows := known.get(int(fragment.id()), 0)))

    def due(self, fragments: tuple[Rdd, ...], most: int, *, only_grows: bool = False) -> int:
        """How many of the newest fragments to merge; 0 if it is not time. `only_grows`: they have no rows that cancel each other."""
        ids = [int(fragment.id()) for fragment in fragments]
        fresh = [self._fresh[number] for number in ids if number in self._fresh]
        waiting = [rows for rows in fresh if rows >= _LARGE_ROWS] if only_grows else []
        if len(fresh) - len(waiting) <= most and len(waiting) <= _MOST_LARGE:
            return 0
        total, count = sum(fresh), len(fresh)
        for number in reversed(ids[:-count]):
            rows = self._merged.get(number, 0)
            if rows > 2 * total:
                break
            total, count = total + rows, count + 1
        return count

    def merge(self, fragments: tuple[Rdd, ...], result: Rdd, rows: int) -> None:
        """Fragments have become one."""
        for fragment in fragments:
            self._fresh.pop(int(fragment.id()), None)
            self._merged.pop(int(fragment.id()), None)
        self._merged[int(result.id())] = rows
