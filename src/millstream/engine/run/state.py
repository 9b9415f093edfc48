"""The life of a query: its states, what can happen to it, and the one function that leads from state to state.

starting ──► running ──► done          the input has ended; also from starting, when it had ended before
    ▲  │        │  └──► stopping ──► stopped     also from starting, when the run is stopped meanwhile
    │  │        └─► starting           once more: for the flush, or for rows that have not been read
    │  └─► flushing ──► done           one more epoch closes what is open at the end of a bounded input
    └── restarting ──► stopped         after a temporary failure in any state; a permanent one leads to failed
"""

from __future__ import annotations

from enum import StrEnum

from millstream.errors import BugError, Diagnostic


class QueryState(StrEnum):
    """The state of a query."""

    STARTING = "starting"
    RUNNING = "running"
    FLUSHING = "flushing"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in {QueryState.STOPPED, QueryState.DONE, QueryState.FAILED}

    @property
    def is_live(self) -> bool:
        """Whether Spark runs the query."""
        return self in {QueryState.RUNNING, QueryState.FLUSHING, QueryState.STOPPING}


class QueryEvent(StrEnum):
    """An event of a query."""

    OPENED = "Spark has started it"
    OPENED_FOR_FLUSH = "Spark has started it for the last epoch"
    CONTINUES = "it must start once more"
    STOP_ASKED = "a stop was requested"
    ENDED = "nothing is left to do"
    HALTED = "it has stopped between epochs"
    RETRIES = "it failed and will be tried again"
    FAILED = "it failed for good"


_FROM_ANY = {QueryEvent.RETRIES: QueryState.RESTARTING, QueryEvent.FAILED: QueryState.FAILED}
_NEXT: dict[tuple[QueryState, QueryEvent], QueryState] = {
    (QueryState.STARTING, QueryEvent.OPENED): QueryState.RUNNING,
    (QueryState.STARTING, QueryEvent.OPENED_FOR_FLUSH): QueryState.FLUSHING,
    (QueryState.STARTING, QueryEvent.ENDED): QueryState.DONE,
    (QueryState.STARTING, QueryEvent.HALTED): QueryState.STOPPED,
    (QueryState.RUNNING, QueryEvent.CONTINUES): QueryState.STARTING,
    (QueryState.RUNNING, QueryEvent.STOP_ASKED): QueryState.STOPPING,
    (QueryState.RUNNING, QueryEvent.ENDED): QueryState.DONE,
    (QueryState.RUNNING, QueryEvent.HALTED): QueryState.STOPPED,
    (QueryState.FLUSHING, QueryEvent.CONTINUES): QueryState.STARTING,
    (QueryState.FLUSHING, QueryEvent.STOP_ASKED): QueryState.STOPPING,
    (QueryState.FLUSHING, QueryEvent.ENDED): QueryState.DONE,
    (QueryState.FLUSHING, QueryEvent.HALTED): QueryState.STOPPED,
    (QueryState.STOPPING, QueryEvent.CONTINUES): QueryState.STARTING,
    (QueryState.STOPPING, QueryEvent.ENDED): QueryState.DONE,
    (QueryState.STOPPING, QueryEvent.HALTED): QueryState.STOPPED,
    (QueryState.RESTARTING, QueryEvent.CONTINUES): QueryState.STARTING,
    (QueryState.RESTARTING, QueryEvent.HALTED): QueryState.STOPPED,
}


def next_state(state: QueryState, event: QueryEvent) -> QueryState:
    """The state of a query after an event."""
    found = _NEXT.get((state, event)) or (None if state.is_final else _FROM_ANY.get(event))
    if found is None:
        raise BugError(Diagnostic("MS099", f"a query that is {state} cannot have the event: {event}"))
    return found
