"""The same windows with Pathway: a sum per key and ten seconds of event time."""

import os
from pathlib import Path

import pathway as pw

FOLDER = Path(os.environ["BENCH_FOLDER"])


class Event(pw.Schema):  # type: ignore[misc]  # Pathway is installed for the comparison only
    """One row."""

    key: int
    value: int
    at: int


events = pw.io.jsonlines.read(str(FOLDER / "in"), schema=Event, mode="static")
windows = events.windowby(events.at, window=pw.temporal.tumbling(duration=10_000), instance=events.key)
sums = windows.reduce(key=pw.this._pw_instance, start=pw.this._pw_window_start, total=pw.reducers.sum(pw.this.value))
pw.io.jsonlines.write(sums, str(FOLDER / "pathway.out"))
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
