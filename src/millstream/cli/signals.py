"""Signals during a run: the first SIGINT or SIGTERM stops the run after the running epoch, the second one stops it now."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.cli.events import EventLog
    from millstream.cli.live import Live


class Signals:
    """The handler of signals. `number` is the first signal that arrived, 0 before that."""

    def __init__(self, views: Sequence[Live | EventLog]) -> None:
        self.number, self._views = 0, views
        self.on_first: Callable[[], object] = lambda: None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            for view in self._views:
                view.close()
                view.add_note("stopped now; the next start repeats the epoch that was running")
            os._exit(128 + number)
        self.number = number
        self.on_first()
        for view in self._views:
            when = "after the running epoch" if view.running else "as soon as Spark has started"
            view.add_note(f"stopping {when} (again: stop now)")


def catch_signals(views: Sequence[Live | EventLog]) -> Signals:
    """Install the handler for SIGINT and SIGTERM."""
    received = Signals(views)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, received)
    return received
