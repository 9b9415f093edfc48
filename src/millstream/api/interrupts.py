"""Ctrl-C in a program or a notebook: the first one requests a stop after the running epoch, the second one interrupts.

An exception during a call to the JVM would leave the connection in an unknown state, so the first one only sets the flag. A handler that
the program has set is not replaced.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """Active while the main thread waits for a run, from the start of Spark to the report."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if stop.is_set():
            raise KeyboardInterrupt
        asked = True
        stop.set()

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # a new exception: the frames of the JVM call are not useful
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if asked:  # the same options may be used for the next run
            stop.clear()
