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
LONGEST = 60.0
LONGEST_AT_FIRST = 5.0
"""The same after the first sample for a wish, which is slow: Spark compiles its code."""
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
    sampled_at: float | None = None


@dataclass(slots=True)
class Watches:
    """The wishes of all who watch. It is thread-safe."""

    _wishes: dict[Watched, _Wish] = field(default_factory=dict)
    _held: dict[str, frozenset[str]] = field(default_factory=dict)
    """Query → the nodes whose rows it holds"""
    _above: dict[str, frozenset[str]] = field(default_factory=dict)
    """Query → the nodes that it would have to read again"""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, node: str, where: str = "", *, begins: bool = False) -> bool:
        """Have the rows of a node sampled for a while; who begins to watch need not wait for the next sample of another. False: there are
        too many wishes.
        """
        now, watched = time.monotonic(), Watched(node, where)
        with self._lock:
            self._forget(now)
            if watched not in self._wishes and len(self._wishes) >= MOST:
                return False
            wish = self._wishes.setdefault(watched, _Wish(0.0))
            wish.until = now + KEPT
            if begins and wish.sampled_at is not None:
                wish.due = min(wish.due, wish.sampled_at + PAUSE)
            return True

    def offer(self, query: str, held: Collection[str], above: Collection[str]) -> None:
        """Note whose rows a running query can show. A node of several queries is shown by one, if possible by one that holds its rows."""
        with self._lock:
            self._held[query], self._above[query] = frozenset(held), frozenset(above)

    def withdraw(self, query: str) -> None:
        """Note that a query does not run."""
        with self._lock:
            self._held.pop(query, None)
            self._above.pop(query, None)

    def due(self, query: str) -> tuple[Watched, ...]:
        """The wishes for which a query should sample rows now."""
        if not self._wishes:  # the usual case costs nothing
            return ()
        now = time.monotonic()
        with self._lock:
            self._forget(now)
            return tuple(watched for watched, wish in self._wishes.items() if now >= wish.due and self._shows(watched.node) == query)

    def _shows(self, node: str) -> str:
        """The query that shows a node."""
        return next((query for offers in (self._held, self._above) for query, nodes in offers.items() if node in nodes), "")

    def note(self, watched: Watched, seconds: float) -> None:
        """Note that rows have been sampled, and how much longer the epoch took for it."""
        with self._lock:
            wish = self._wishes.get(watched)
            if wish is not None:
                longest = LONGEST_AT_FIRST if wish.sampled_at is None else LONGEST
                wish.sampled_at = time.monotonic()
                wish.due = wish.sampled_at + min(max(PAUSE, seconds * len(self._wishes) / SHARE), longest)

    def _forget(self, now: float) -> None:
        self._wishes = {watched: wish for watched, wish in self._wishes.items() if wish.until > now}
