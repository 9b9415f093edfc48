"""Ctrl-C in a program or a notebook: the first one asks for a stop after the running epoch, the second one interrupts.

An exception in the middle of a call to the JVM would leave the connection in an unknown state, so the first one only sets the flag. Who
has a handler of his own, as the command line does, keeps it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """While a run is watched from the main thread."""

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
