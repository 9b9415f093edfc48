"""Rows are sampled for those who ask again and again, and take a small share of the time."""

from __future__ import annotations

import pytest

from millstream.observe import watches as module
from millstream.observe.watches import KEPT, LONGEST, PAUSE, SHARE, Watches


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_node_is_due_when_somebody_has_asked_and_for_a_while(clock: list[float]) -> None:
    watches = Watches()
    assert watches.due(["a", "b"]) == set()
    watches.ask("a")
    assert watches.due(["a", "b"]) == {"a"}
    clock[0] += KEPT + 0.1
    assert watches.due(["a"]) == set()


@pytest.mark.parametrize(("seconds", "pause"), [(0.001, PAUSE), (0.04, 0.04 / SHARE), (1.0, LONGEST)])
def test_samples_take_a_small_share_of_the_time(clock: list[float], seconds: float, pause: float) -> None:
    watches = Watches()
    watches.ask("a")
    watches.note("a", seconds)
    clock[0] += pause - 0.1
    watches.ask("a")
    assert watches.due(["a"]) == set()
    clock[0] += 0.2
    assert watches.due(["a"]) == {"a"}
