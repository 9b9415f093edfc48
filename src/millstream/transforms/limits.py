"""How long a user's function may take: an alarm of the operating system interrupts it wherever it is, so that the trace shows the line.

Code that never comes back to Python, such as a loop in a C library, is not interrupted.

This module travels to the workers (`shipping.py`), so it imports nothing of Millstream.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TimedOutError(BaseException):
    """The function takes longer than it may. No `except Exception` of the user's stops it."""


@contextmanager
def limited(timeout_ms: int | None) -> Iterator[None]:
    """An alarm that interrupts the function wherever it is."""
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
