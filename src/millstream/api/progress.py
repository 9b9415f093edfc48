"""The progress of a run: one line on stderr that is overwritten, on a terminal and in a notebook.

If stderr is neither, nothing is written: the output belongs to the program.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from millstream.api.cell import running_shell
from millstream.observe.facts import Snapshot
from millstream.plan.run_options import RunOptions

_EVERY_SECONDS = 0.2


@contextmanager
def show_progress(name: str, options: RunOptions) -> Iterator[RunOptions]:
    """Options that show the run, unless the caller already watches it or the line would not be visible."""
    if options.watch is not None or not _is_seen():
        yield options
        return
    line = ProgressLine(options.stop)
    line.write(f"{name}: starting")
    try:
        yield replace(options, watch=line.update)
    finally:
        line.write("")


class ProgressLine:
    """The line, and the notes of the run above it."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop, self._length, self._noted, self._at = stop, 0, 0, 0.0

    def update(self, snapshot: Snapshot) -> None:
        if time.monotonic() - self._at < _EVERY_SECONDS:
            return
        self._at = time.monotonic()
        for note in snapshot.notes[self._noted :]:
            self.write("")
            sys.stderr.write(f"{note}\n")
        self._noted = len(snapshot.notes)
        self.write(_sentence(snapshot, self._stop.is_set()))

    def write(self, text: str) -> None:
        """Replace the line."""
        text = text[: shutil.get_terminal_size().columns - 1]
        sys.stderr.write(f"\r{text:<{self._length}}" + ("" if text else "\r"))
        sys.stderr.flush()
        self._length = len(text)


def _sentence(snapshot: Snapshot, stopping: bool) -> str:
    state = "stopping after the running epoch (Ctrl-C again: stop now)" if stopping else snapshot.state
    nodes = snapshot.nodes.values()
    read = sum(facts.rows_out or 0 for facts in nodes if facts.kind == "source")
    written = sum(facts.rows_in or 0 for facts in nodes if facts.kind == "sink")
    epochs = sum(query.epochs for query in snapshot.queries.values())
    return f"{snapshot.pipeline}: {state}, {snapshot.seconds:.0f} s, epochs: {epochs}, rows read: {read:,}, rows written: {written:,}"


def _is_seen() -> bool:
    return sys.stderr.isatty() or hasattr(running_shell(), "kernel")
