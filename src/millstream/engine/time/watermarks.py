"""The event times of a query's inputs, tracked over epochs: which input holds the watermark back, and which one is idle.

Spark's watermark is the minimum over the inputs, so an idle input stops it. When an input with `idle_after` has been idle for that long and
others have not, the watermark is set to the minimum over the others, inside the epoch: Spark stores it with the epoch's commit. Idle time
counts from the end of the last epoch that had rows, so an input that waits behind long epochs does not count as idle.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from millstream.engine.time.operators import Saw
from millstream.errors import Diagnostic, RunError
from millstream.observe.facts import WatermarkFacts
from millstream.plan.cutting import QueryPlan
from millstream.plan.event_time import FAR_MS


@dataclass
class Watermarks:
    """The event times of a query's inputs since its start."""

    plan: QueryPlan
    nodes: Mapping[str, str]
    """Spark's identifier of a watermark → node"""
    started: float = field(default_factory=time.time)
    _own: dict[str, int] = field(default_factory=dict)
    """node → latest event time less its delay"""
    _heard: dict[str, float] = field(default_factory=dict)
    """node → end of the last epoch with rows of it"""

    def observe(self, seen: Sequence[Saw]) -> set[str]:
        """Record an epoch's times; returns the inputs that had rows."""
        active = {self.nodes[saw.id]: saw.latest_ms for saw in seen if saw.rows and saw.id in self.nodes}
        for name, latest in active.items():
            own = latest - self.plan.delay_ms(name)
            self._own[name] = max(own, self._own.get(name, 0))
        return set(active)

    def refuse(self, seen: Sequence[Saw], now_ms: int) -> None:
        """Raise before the commit of an epoch with a time too far ahead of the clock, where `on_error` is `fail`."""
        for saw in seen:
            node = self.plan.node(self.nodes[saw.id]) if saw.id in self.nodes else None
            event_time = node.options.event_time if node is not None else None
            if node is None or event_time is None or node.isolates or not saw.rows:
                continue
            if saw.latest_ms > now_ms + event_time.max_ahead.milliseconds:
                value = (datetime(1970, 1, 1) + timedelta(milliseconds=min(saw.latest_ms, FAR_MS))).isoformat(" ", "seconds")
                message = f"`{node.name}`: {event_time.unusable(value)}"
                help_ = "`on_error: drop` leaves such rows out, `on_error: {dead_letter: SINK}` keeps them"
                raise RunError(Diagnostic("MS072", message, node.place("event_time"), help=help_))

    def end_epoch(self, active: set[str]) -> None:
        """Record the end of an epoch with rows from these inputs."""
        self._heard.update(dict.fromkeys(active, time.time()))

    def target(self, planned_at: float, active: set[str]) -> int | None:
        """The watermark without the idle inputs; None when no input is idle, or all are. An input with rows in this epoch is not idle."""
        names = set(self.nodes.values())
        idle = {name for name in names - active if self._is_idle(name, planned_at)}
        awake = names - idle
        if not idle or not awake or not awake <= set(self._own):
            return None
        return min(self._own[name] for name in awake)

    def facts(self, watermark_ms: int) -> WatermarkFacts | None:
        """Facts for people; None while there is none, or while it is held back until the end of the input."""
        if self.plan.held or not self._own or watermark_ms <= 0:
            return None
        latest = max(self._own.values())
        missing = sorted(set(self.nodes.values()) - set(self._own))
        slowest = missing[0] if missing else min(self._own, key=lambda name: self._own[name])
        return WatermarkFacts(watermark_ms, max(0.0, time.time() - watermark_ms / 1000), slowest, max(0, latest - watermark_ms) / 1000)

    def _is_idle(self, name: str, planned_at: float) -> bool:
        event_time = self.plan.node(name).options.event_time
        if event_time is None or event_time.idle_after is None:
            return False
        return planned_at - self._heard.get(name, self.started) >= event_time.idle_after.seconds
