"""Rows are sampled for those who ask again and again, and take a small share of the time."""

from __future__ import annotations

import pytest

from millstream.observe import watches as module
from millstream.observe.watches import KEPT, LONGEST, LONGEST_AT_FIRST, MOST, PAUSE, SHARE, Watched, Watches

QUERY = "q"


def offered() -> Watches:
    watches = Watches()
    watches.offer(QUERY, {"a"}, {"above"})
    return watches


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_node_is_due_when_somebody_has_asked_and_for_a_while(clock: list[float]) -> None:
    watches = offered()
    assert watches.due(QUERY) == ()
    watches.ask("a")
    assert watches.due(QUERY) == (Watched("a"),)
    clock[0] += KEPT + 0.1
    assert watches.due(QUERY) == ()


@pytest.mark.parametrize(("seconds", "pause"), [(0.001, PAUSE), (0.04, 0.04 / SHARE), (1.0, 1.0 / SHARE), (9.0, LONGEST)])
def test_samples_take_a_small_share_of_the_time(clock: list[float], seconds: float, pause: float) -> None:
    watches = offered()
    watches.ask("a")
    for _ in range(2):
        watches.note(Watched("a"), seconds)
    until = clock[0] + pause - 0.1
    while clock[0] < until:  # who watches asks again before the wish ends
        clock[0] = min(clock[0] + KEPT / 2, until)
        watches.ask("a")
    assert watches.due(QUERY) == ()
    clock[0] += 0.2
    assert watches.due(QUERY) == (Watched("a"),)


def test_the_first_sample_does_not_keep_the_second_one_waiting(clock: list[float]) -> None:
    """It is slow, as Spark compiles its code."""
    watches = offered()
    watches.ask("a")
    watches.note(Watched("a"), 3.0)
    clock[0] += LONGEST_AT_FIRST + 0.1
    assert watches.due(QUERY) == (Watched("a"),)


def test_who_begins_to_watch_does_not_wait_for_the_next_sample_of_another(clock: list[float]) -> None:
    watches = offered()
    watches.ask("a", begins=True)
    for _ in range(2):
        watches.note(Watched("a"), 1.0)
    clock[0] += PAUSE + 0.1
    watches.ask("a")
    assert watches.due(QUERY) == ()
    watches.ask("a", begins=True)
    assert watches.due(QUERY) == (Watched("a"),)


def test_each_filter_is_a_wish_of_its_own(clock: list[float]) -> None:
    watches = offered()
    watches.ask("a")
    watches.ask("a", "id > 3")
    watches.note(Watched("a"), 0.0)
    assert watches.due(QUERY) == (Watched("a", "id > 3"),)


def test_there_are_not_too_many_wishes(clock: list[float]) -> None:
    watches = offered()
    assert all(watches.ask("a", f"id > {number}") for number in range(MOST))
    assert not watches.ask("a", "id > 99")
    assert watches.ask("a", "id > 3"), "one that exists lasts on"
    clock[0] += KEPT + 0.1
    assert watches.ask("a", "id > 99")


def test_a_node_of_several_queries_is_shown_by_one_that_holds_its_rows(clock: list[float]) -> None:
    watches = Watches()
    watches.offer("first", {"x"}, {"a", "b"})
    watches.offer("second", {"a"}, {"b"})
    watches.ask("a")
    watches.ask("b")
    assert (watches.due("first"), watches.due("second")) == ((Watched("b"),), (Watched("a"),))
    watches.withdraw("second")
    assert watches.due("first") == (Watched("a"), Watched("b"))
