"""While the gate is closed no epoch begins, and a copy waits for those that run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from millstream.observe.gate import Gate


def start(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def epoch(gate: Gate, ran: list[str], given_up: Callable[[], bool] = lambda: False) -> None:
    with gate.passed(given_up) as begins:
        ran.append("ran" if begins else "refused")


def test_a_paused_epoch_begins_when_it_is_resumed() -> None:
    gate, ran = Gate(), list[str]()
    gate.pause()
    gate.pause()
    thread = start(lambda: epoch(gate, ran))
    time.sleep(0.1)
    assert ran == []
    gate.resume()
    thread.join(5)
    assert ran == ["ran"]


def test_a_stop_ends_the_wait_and_refuses_the_epoch() -> None:
    gate, ran, stop = Gate(), list[str](), threading.Event()
    gate.pause()
    thread = start(lambda: epoch(gate, ran, stop.is_set))
    stop.set()
    thread.join(5)
    assert ran == ["refused"]


def test_closing_waits_for_the_running_epoch_and_holds_the_next() -> None:
    gate, ends, log = Gate(), threading.Event(), list[str]()

    def long() -> None:
        with gate.passed(lambda: False):
            ends.wait(5)
            log.append("first ended")

    first = start(long)
    time.sleep(0.05)

    def save() -> None:
        with gate.closed(5) as ended:
            log.append(f"saving {ended}")
            time.sleep(0.2)
            log.append("saved")

    saving = start(save)
    time.sleep(0.05)
    second = start(lambda: epoch(gate, log))
    ends.set()
    for thread in (first, saving, second):
        thread.join(5)
    assert log == ["first ended", "saving True", "saved", "ran"]


def test_closing_says_when_the_running_epoch_does_not_end() -> None:
    gate, ends = Gate(), threading.Event()

    def long() -> None:
        with gate.passed(lambda: False):
            ends.wait(5)

    thread = start(long)
    time.sleep(0.05)
    with gate.closed(0.05) as ended:
        assert not ended
    ends.set()
    thread.join(5)


def test_a_pause_during_a_copy_outlasts_it() -> None:
    gate, ran = Gate(), list[str]()
    with gate.closed(1):
        gate.pause()
    thread = start(lambda: epoch(gate, ran))
    time.sleep(0.1)
    assert gate.is_paused
    assert ran == []
    gate.resume()
    thread.join(5)
    assert ran == ["ran"]
