"""The time limit of a user's function: an alarm of the operating system interrupts it, so that the trace shows the current line.

Code that does not return to Python, such as a loop in a C library, is not interrupted. This module is pickled to the workers
(`pickling.py`), so it imports nothing of Millstream.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TimedOutError(BaseException):
    """The function exceeded its time limit. A user's `except Exception` does not catch it."""


@contextmanager
def time_limit(timeout_ms: int | None) -> Iterator[None]:
    """Interrupt the body after the timeout."""
    if timeout_ms is None:
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise TimedOutError(f"it did not return within {timeout_ms / 1000:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, timeout_ms / 1000)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
