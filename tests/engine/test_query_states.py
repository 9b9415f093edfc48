"""The life of a query: one function leads from state to state, final states are final, and what makes no sense is a bug."""

from __future__ import annotations

from itertools import product

import pytest

from millstream.engine.run.state import QueryEvent, QueryState, next_state
from millstream.errors import BugError

S, E = QueryState, QueryEvent


@pytest.mark.parametrize(
    "way",
    [
        [(E.OPENED, S.RUNNING), (E.ENDED, S.DONE)],
        [(E.OPENED, S.RUNNING), (E.CONTINUES, S.STARTING), (E.OPENED_FOR_FLUSH, S.FLUSHING), (E.ENDED, S.DONE)],
        [(E.OPENED, S.RUNNING), (E.RETRIES, S.RESTARTING), (E.CONTINUES, S.STARTING), (E.FAILED, S.FAILED)],
        [(E.OPENED, S.RUNNING), (E.STOP_ASKED, S.STOPPING), (E.HALTED, S.STOPPED)],
        [(E.RETRIES, S.RESTARTING), (E.HALTED, S.STOPPED)],
        [(E.ENDED, S.DONE)],
    ],
)
def test_ways_through_a_life(way: list[tuple[QueryEvent, QueryState]]) -> None:
    state = S.STARTING
    for event, expected in way:
        state = next_state(state, event)
        assert state is expected
    assert state.is_final


def test_nothing_leads_out_of_a_final_state() -> None:
    for state, event in product([state for state in S if state.is_final], E):
        with pytest.raises(BugError, match="MS099"):
            next_state(state, event)


def test_every_state_that_is_not_final_can_fail_be_tried_again_and_stop() -> None:
    for state in [state for state in S if not state.is_final]:
        assert next_state(state, E.FAILED) is S.FAILED
        assert next_state(state, E.RETRIES) is S.RESTARTING
        assert next_state(state, E.HALTED) is S.STOPPED


def test_every_live_state_can_end_and_can_start_once_more() -> None:
    for state in [state for state in S if state.is_live]:
        assert next_state(state, E.ENDED) is S.DONE
        assert next_state(state, E.CONTINUES) is S.STARTING
