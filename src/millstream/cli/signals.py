"""Signals during a run: the first SIGINT or SIGTERM stops the run after the running epoch, the second one stops it now."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.cli.events import EventLog
    from millstream.cli.live import Live


class Signals:
    """The handler of signals. `number` is the first signal that arrived, 0 before that."""

    def __init__(self, views: Sequence[Live | EventLog], stop: Callable[[], object]) -> None:
        self.number, self._views, self._stop = 0, views, stop

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.number:
            try:
                for view in self._views:
                    view.close()
                    _add_note(view, "stopped now; the next start repeats the epoch that was running")
            finally:
                os._exit(128 + number)
        self.number = number
        self._stop()
        for view in [view for view in self._views if not view.ended]:
            when = "after the running epoch" if view.running else "as soon as Spark has started"
            _add_note(view, f"stopping {when} (again: stop now)")


def _add_note(view: Live | EventLog, text: str) -> None:
    with suppress(RuntimeError):  # the interrupted line was writing to the same stream
        view.add_note(text)


def catch_signals(views: Sequence[Live | EventLog], stop: Callable[[], object]) -> Signals:
    """Install the handler for SIGINT and SIGTERM. The first signal calls `stop`."""
    received = Signals(views, stop)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, received)
    return received
