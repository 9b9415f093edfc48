"""A continuous pipeline takes files as they come, until it is told to stop."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millstream.observe.facts import Snapshot

pytestmark = pytest.mark.spark
TEXT = """
sources: {rows: {type: file, path: in, format: json, schema: {id: int64}, mode: {type: continuous, poll_interval: 100ms}}}
sinks: {out: {type: memory, from: rows}}
"""


@pytest.mark.parametrize("settings", ["", "settings: {trigger: {type: interval, every: 200ms}}\n"], ids=["as fast as possible", "interval"])
def test_files_are_read_as_they_come(pipeline: Callable, run: Callable, settings: str) -> None:
    topology = pipeline(TEXT + settings)
    Path("in").mkdir()
    Path("in/0.json").write_text('{"id": 0}\n')
    stop, started = threading.Event(), time.monotonic()

    def watch(snapshot: Snapshot) -> None:
        seen = snapshot.nodes["rows"].rows_out if "rows" in snapshot.nodes else 0
        if seen == 1 and not Path("in/1.json").exists():
            Path("in/.1.tmp").write_text('{"id": 1}\n')
            Path("in/.1.tmp").rename("in/1.json")
        if seen == 2 or time.monotonic() - started > 60:
            stop.set()

    report = run(topology, stop=stop, watch=watch)
    assert report.state == "stopped"
    assert sorted(row["id"] for row in topology.node("out").component.rows()) == [0, 1]


def test_an_empty_directory_is_waited_for(pipeline: Callable, run: Callable) -> None:
    topology = pipeline(TEXT)
    Path("in").mkdir()
    stop = threading.Event()
    threading.Timer(2, stop.set).start()
    assert run(topology, stop=stop).state == "stopped"
