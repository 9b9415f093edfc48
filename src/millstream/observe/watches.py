"""The nodes whose rows somebody wants to see, for as long as somebody asks again. A wish is a node and a filter: who wants a rare row has
the rows filtered before some of them are taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

KEPT = 10.0
"""Seconds that a wish lasts."""
PAUSE = 1.0
"""The shortest time between two samples for a wish, in seconds."""
SHARE = 0.02
"""The most of the time that all samples may take, as long as the pause between two for a wish stays below `LONGEST`."""
LONGEST = 5.0
LONGEST_AGAIN = 60.0
"""The same for samples that cost more than a look at rows that are held: a filter runs over all of them, or the input is read again. The
first of them is slow, as Spark compiles its code: it counts as the others do."""
ROWS = 20
MOST = 20
"""Wishes at a time."""


class Watched(NamedTuple):
    """What is watched."""

    node: str
    where: str = ""
    """An expression of Spark SQL over the node's columns; empty for all rows."""


@dataclass(slots=True)
class _Wish:
    until: float
    due: float = 0.0
    samples: int = 0


@dataclass(slots=True)
class Watches:
    """The wishes of all who watch. It is thread-safe."""

    _wishes: dict[Watched, _Wish] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, node: str, where: str = "") -> bool:
        """Have the rows of a node sampled for a while. False: there are too many wishes."""
        now, watched = time.monotonic(), Watched(node, where)
        with self._lock:
            self._forget(now)
            if watched not in self._wishes and len(self._wishes) >= MOST:
                return False
            self._wishes.setdefault(watched, _Wish(0.0)).until = now + KEPT
            return True

    def due(self, nodes: Collection[str]) -> tuple[Watched, ...]:
        """The wishes about these nodes for which rows should be sampled now."""
        if not self._wishes:  # the usual case costs nothing
            return ()
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            return tuple(watched for watched, wish in self._wishes.items() if watched.node in nodes and now >= wish.due)

    def note(self, watched: Watched, seconds: float, *, again: bool = False) -> None:
        """Note that rows have been sampled, and how long that took."""
        with self._lock:
            wish = self._wishes.get(watched)
            if wish is not None:
                wish.samples += 1
                longest = LONGEST_AGAIN if (again or watched.where) and wish.samples > 1 else LONGEST
                wish.due = time.monotonic() + min(max(PAUSE, seconds * len(self._wishes) / SHARE), longest)

    def _forget(self, now: float) -> None:
        self._wishes = {watched: wish for watched, wish in self._wishes.items() if wish.until > now}
