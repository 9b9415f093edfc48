"""The nodes whose rows somebody wants to see, for as long as somebody asks again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

KEPT = 10.0
"""Seconds that a wish lasts."""
PAUSE = 1.0
"""The shortest time between two samples of a node, in seconds."""
SHARE = 0.02
"""The most of the time that samples of a node may take, as long as the pause between them stays below `LONGEST`."""
LONGEST = 5.0
ROWS = 20


@dataclass(slots=True)
class _Wish:
    until: float
    due: float = 0.0


@dataclass(slots=True)
class Watches:
    """The wishes of all who watch. It is thread-safe."""

    _wishes: dict[str, _Wish] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, node: str) -> None:
        """Have the rows of a node sampled for a while."""
        with self._lock:
            self._wishes.setdefault(node, _Wish(0.0)).until = time.monotonic() + KEPT

    def due(self, nodes: Iterable[str]) -> frozenset[str]:
        """Those of the nodes whose rows should be sampled now."""
        if not self._wishes:  # the usual case costs nothing
            return frozenset()
        now = time.monotonic()
        with self._lock:
            self._wishes = {name: wish for name, wish in self._wishes.items() if wish.until > now}
            return frozenset(name for name in nodes if name in self._wishes and now >= self._wishes[name].due)

    def note(self, node: str, seconds: float) -> None:
        """Note that a node has been sampled, and how long that took."""
        with self._lock:
            if node in self._wishes:
                self._wishes[node].due = time.monotonic() + min(max(PAUSE, seconds / SHARE), LONGEST)
