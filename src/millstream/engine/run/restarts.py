"""Restarts after temporary failures: their number, and the pause before the next one."""

from __future__ import annotations

import time
from dataclasses import dataclass

from millstream.plan.settings import RestartPolicy


@dataclass(slots=True)
class Restarts:
    """The restarts of a query, or of Spark itself, since the last progress."""

    policy: RestartPolicy
    count: int = 0
    due: float = 0.0
    """When the next start is due, on the monotonic clock."""

    @property
    def are_left(self) -> bool:
        return self.count < self.policy.limit

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.due

    def schedule(self) -> float:
        """Plan the next restart; the pause in seconds."""
        pause: float = min(self.policy.backoff.seconds * 2**self.count, self.policy.max_backoff.seconds)
        self.count += 1
        self.due = time.monotonic() + pause
        return pause

    def schedule_now(self) -> None:
        """Start again at once; this does not count as a restart."""
        self.due = time.monotonic()

    def forget(self) -> None:
        """Rows were committed: the next failure counts as the first."""
        self.count = 0
