"""Ctrl-C while a program waits for a run: the first one asks for a stop, the second one interrupts."""

import signal
import threading
import traceback
from types import FrameType

import pytest

from millstream.api.interrupts import interruptible


def test_the_first_one_asks_and_the_second_one_interrupts() -> None:
    stop = threading.Event()

    def inside() -> None:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as interrupted, interruptible(stop):
        inside()
    shown = "".join(traceback.format_exception(interrupted.value))
    assert "inside" not in shown  # no frames of what was interrupted
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_program_stays() -> None:
    received = []

    def own(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        stop = threading.Event()
        with interruptible(stop):
            signal.raise_signal(signal.SIGINT)
        assert received == [signal.SIGINT] and not stop.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_has_no_handler_to_set() -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with interruptible(threading.Event()):
                pass
        except BaseException as error:  # noqa: BLE001 — whatever it is, the thread must not hide it
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert failures == []
