"""Is a run healthy? In words, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from millstream.observe.facts import Snapshot

Status = Literal["starting", "running", "paused", "degraded", "stopping", "failed", "ended"]
_STATUS: dict[str, Status] = {
    "starting": "starting",
    "stopping": "stopping",
    "failed": "failed",
    "done": "ended",
    "stopped": "ended",
}
LAGGING = 60.0
"""Seconds that rows of a running epoch wait before the run counts as degraded."""


@dataclass(frozen=True, slots=True)
class Health:
    """The status of a run, and why it is not `running`."""

    status: Status
    reasons: tuple[str, ...] = ()
    is_ready: bool = False
    """Whether it processes rows, or would if there were any."""


def health_of(snapshot: Snapshot, paused: bool = False) -> Health:
    status = _STATUS.get(snapshot.state)
    if status is not None:
        last = snapshot.notes[-1] if snapshot.notes else ""
        return Health(status, (f"the run is {snapshot.state}", *([str(last)] if last and status == "failed" else [])))
    if snapshot.state == "restarting":
        return Health("degraded", ("Spark is restarting",))
    starting = [name for name, query in snapshot.queries.items() if query.state == "starting"]
    restarting = [f"query `{name}` is restarting" for name, query in snapshot.queries.items() if query.state == "restarting"]
    lagging = [
        f"rows of query `{name}` wait for {query.lag_seconds:.0f} s"
        for name, query in snapshot.queries.items()
        if query.lag_seconds > LAGGING
    ]
    if paused:
        return Health("paused", ("no epoch begins until `millstream resume`",))
    if restarting or lagging:
        return Health("degraded", (*restarting, *lagging), is_ready=not restarting)
    if starting or not snapshot.queries:
        return Health("starting", tuple(f"query `{name}` is starting" for name in starting))
    return Health("running", is_ready=True)
