"""An input that falls silent does not stop the clock for the others, when it says after how long."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.engine.time.operators import Saw
from millstream.engine.time.watermarks import Watermarks
from millstream.observe.facts import Snapshot
from millstream.plan.cutting import cut

pytestmark = pytest.mark.spark
SOURCE = (
    "{type: file, path: NAME, format: json, schema: {user: string, at: timestamp}, mode: {type: continuous, poll_interval: 100ms}, EVENT}"
)
EVENT = "event_time: {column: at, watermark: 0s, IDLE}"
PIPELINE = """
name: p
sources:
  loud: LOUD
  silent: SILENT
transforms:
  all: {type: union, from: [loud, silent]}
  counted: {type: window, from: all, window: {type: tumbling, size: 1m}, aggregate: {n: count(*)}}
sinks:
  out: {type: memory, from: counted}
"""


def write(name: str, number: int, minute: int) -> None:
    Path(name).mkdir(exist_ok=True)
    temporary = Path(name) / f".{number}"
    temporary.write_text(json.dumps({"user": name, "at": f"2024-01-01T00:{minute:02}:30Z"}) + "\n")
    temporary.rename(Path(name) / f"{number}.json")


def run_both(pipeline: Callable[..., Any], run: Callable[..., Any], idle: str) -> tuple[dict[int, int], Snapshot]:
    text = PIPELINE.replace("LOUD", SOURCE.replace("NAME", "loud").replace("EVENT", EVENT.replace(", IDLE", "")))
    text = text.replace("SILENT", SOURCE.replace("NAME", "silent").replace("EVENT", EVENT.replace(", IDLE", idle)))
    topology, stop, seen = pipeline(text), threading.Event(), []

    def watch(snapshot: Snapshot) -> None:
        seen.append(snapshot)
        epochs = sum(query.epochs for query in snapshot.queries.values())
        minutes = len(list(Path("loud").glob("*.json")))
        if epochs > minutes and minutes < 6:
            write("loud", minutes, minutes)
        if topology.node("out").component.table().num_rows or time.monotonic() > deadline:
            stop.set()

    write("silent", 0, 0)
    write("loud", 0, 0)
    deadline = time.monotonic() + 15
    run(topology, watch=watch, stop=stop)
    windows = topology.node("out").component.table().to_pylist()
    return {window["window_start"].minute: window["n"] for window in windows}, seen[-1]


def test_the_clock_moves_on_without_a_silent_input(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    counts, snapshot = run_both(pipeline, run, ", idle_after: 1s")
    assert counts[0] == 2, "the first minute, with the rows of both"
    watermark = snapshot.queries["counted"].watermark
    assert watermark is not None and watermark.slowest == "silent" and watermark.at_ms > 1704067230000


def test_without_idle_after_the_silent_input_holds_the_clock(pipeline: Callable[..., Any], run: Callable[..., Any]) -> None:
    counts, snapshot = run_both(pipeline, run, "")
    watermark = snapshot.queries["counted"].watermark
    assert counts == {} and watermark is not None and watermark.at_ms <= 1704067230000 and watermark.slowest == "silent"


def test_an_input_with_rows_in_the_epoch_is_not_idle(pipeline: Callable[..., Any]) -> None:
    text = PIPELINE.replace("LOUD", SOURCE.replace("NAME", "loud").replace("EVENT", EVENT.replace("IDLE", "idle_after: 1s")))
    topology = pipeline(text.replace("SILENT", SOURCE.replace("NAME", "silent").replace("EVENT", EVENT.replace("IDLE", "idle_after: 1s"))))
    watermarks = Watermarks(cut(topology)[0], {"1": "loud", "2": "silent"}, started=0)
    active = watermarks.observe([Saw("1", 1, 5000), Saw("2", 1, 2000)])
    assert watermarks.target(60, active) is None, "a slow start is no silence"
    watermarks.end_epoch({"loud"})
    assert watermarks.target(time.time(), set()) == 5000
