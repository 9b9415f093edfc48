"""Process functions in whole pipelines on Spark: state across epochs and runs, side outputs, timers at the end, types, the clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from millstream import BucketFunction, BucketResult, read_committed
from millstream.checkpoint.inventory import take_stock
from millstream.checkpoint.layout import Checkpoint
from millstream.checkpoint.state_reader import parts
from millstream.checkpoint.verification import damages
from millstream.clients.storage import LocalStorage
from millstream.engine.engine import SparkEngine
from millstream.keyed.state_reader import stored_state
from millstream.plan.run_options import RunOptions
from millstream.transforms.process import Process

pytestmark = pytest.mark.spark
FUNCTIONS = '''
from datetime import timedelta
from millstream import ListState, MapState, ProcessFunction, ValueState

class Sessions(ProcessFunction):
    """Clicks of a user until ten quiet minutes; large ones are alerts."""

    output = {"user": "string", "clicks": "int64", "pages": "list<string>"}
    outputs = {"alerts": {"user": "string", "n": "int64"}}
    state = {
        "clicks": ValueState("int64"),
        "pages": ListState("string", ttl="30d"),
        "by_page": MapState("int64"),
        "until": ValueState("timestamp"),
    }

    def process(self, key, rows, state, timers):
        for row in rows.to_pylist():
            state["clicks"].set(state["clicks"].get(0) + row["n"])
            state["pages"].append(row["page"])
            state["by_page"][row["page"]] = state["by_page"].get(row["page"], 0) + 1
            if row["n"] > 100:
                yield "alerts", {"user": key, "n": row["n"]}
        if state["until"].get():
            timers.cancel(state["until"].get())
        until = row["at"] + timedelta(minutes=10)
        state["until"].set(until)
        timers.at(until)

    def on_timer(self, key, time, state, timers):
        yield {"user": key, "clicks": state["clicks"].get(), "pages": state["pages"].get()}
        for cell in state.values():
            cell.clear()

class Ticking(ProcessFunction):
    output = {"what": "string"}

    def process(self, key, rows, state, timers):
        timers.at_clock(timers.now + timedelta(milliseconds=1))
        yield {"what": f"{key} rows"}

    def on_clock(self, key, time, state, timers):
        yield {"what": f"{key} clock"}
'''
PIPELINE = """
sources:
  clicks:
    type: file
    path: in
    format: json
    schema: {{user: string, page: string, n: int64, at: timestamp}}
    mode: {mode}
    max_files_per_epoch: 1
    event_time: {{column: at, watermark: 0s}}
transforms:
  sessions: {{type: process, from: clicks, key_by: [user], function: "functions.py:Sessions", buckets: 4}}
  alerts: {{type: output, from: sessions, output: alerts}}
  upper: {{type: select, from: sessions, columns: {{user: upper(user), clicks: clicks, pages: pages}}}}
sinks:
  out: {{type: file, from: upper, path: out, format: parquet}}
  raised: {{type: file, from: alerts, path: raised, format: parquet}}
settings: {{trigger: {trigger}}}
"""


def click(user: str | None, minute: int, n: int = 1, page: str = "/") -> dict[str, Any]:
    return {"user": user, "page": page, "n": n, "at": f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"}


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., None]:
    (tmp_path / "in").mkdir()
    (tmp_path / "functions.py").write_text(FUNCTIONS)

    def write(*rows: dict[str, Any]) -> None:
        count = len(list((tmp_path / "in").iterdir()))
        (tmp_path / "in" / f"{count:03}.json").write_text("\n".join(map(json.dumps, rows)))
        import os

        os.utime(tmp_path / "in" / f"{count:03}.json", (1_700_000_000 + count, 1_700_000_000 + count))

    return write


def rows(path: Path) -> list[tuple[Any, ...]]:
    found = read_committed(str(path)).to_pylist() if path.exists() else []
    return sorted(tuple(row.values()) for row in found)


def test_sessions_by_timers_end_with_the_input_and_alerts_go_their_own_way(
    pipeline: Callable, run: Callable, add: Callable, tmp_path: Path
) -> None:
    add(click("ann", 0), click("bob", 1, 500))
    add(click("ann", 5, 2, "/a"), click("ann", 3, 4, "/b"))
    add(click("zoe", 20))
    add(click("bob", 60), click("ann", 90))
    run(pipeline(PIPELINE.format(mode="{type: bounded}", trigger="{type: continuous}")))
    assert rows(tmp_path / "raised") == [("bob", 500)]
    assert rows(tmp_path / "out") == [
        ("ANN", 1, ["/"]),
        ("ANN", 7, ["/", "/b", "/a"]),
        ("BOB", 1, ["/"]),
        ("BOB", 500, ["/"]),
        ("ZOE", 1, ["/"]),
    ]


def test_state_and_timers_survive_a_restart_and_can_be_read_in_between(
    pipeline: Callable, run: Callable, add: Callable, tmp_path: Path, spark: Any
) -> None:
    topology = pipeline(PIPELINE.format(mode="{type: continuous}", trigger="{type: available_now}"))
    add(click("ann", 0, 3), click("bob", 1))
    run(topology)
    assert rows(tmp_path / "out") == []
    (checkpoint,) = tmp_path.rglob("queries/sessions")
    kept = {record.key["user"]: record for record in stored_state(spark, str(checkpoint), "sessions")}
    assert kept["ann"].state == {"clicks": 3, "pages": ["/"], "by_page": {"/": 1}, "until": datetime(2026, 1, 1, 0, 10, tzinfo=UTC)}
    assert kept["bob"].timers == (datetime(2026, 1, 1, 0, 11, tzinfo=UTC),)
    assert list(stored_state(spark, str(checkpoint), "another")) == []
    remembered = topology.node("sessions").component.read_state(spark, str(checkpoint), "sessions")
    assert sorted(row["key"]["user"] for row in remembered) == ["ann", "bob"]
    progress = Checkpoint(LocalStorage(checkpoint.parent.parent), "p")
    assert damages(progress) == []
    (operator,) = take_stock(progress).queries[0].operators
    assert operator.kind == "process"
    assert parts(spark, progress.query("sessions"), [operator])[0].frame.count() > 0
    add(click("ann", 5, 4, "/later"))
    add(click("zoe", 100))
    run(topology)
    run(topology)
    assert rows(tmp_path / "out") == [("ANN", 7, ["/", "/later"]), ("BOB", 1, ["/"])]


CLOCK = """
sources:
  clicks: {{type: file, path: in, format: json, schema: {{user: string, page: string, n: int64, at: timestamp}}, mode: {mode}}}
transforms:
  ticking: {{type: process, from: clicks, key_by: user, function: "functions.py:Ticking"}}
sinks:
  out: {{type: file, from: ticking, path: out, format: parquet}}
settings: {{trigger: {trigger}}}
"""


ENDS = {"bounded": ("{type: bounded}", "{type: continuous}"), "available now": ("{type: continuous}", "{type: available_now}")}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_a_run_that_ends_by_itself_does_not_wait_for_the_clock(
    pipeline: Callable, run: Callable, add: Callable, tmp_path: Path, ends: tuple[str, str]
) -> None:
    add(click("ann", 0))
    run(pipeline(CLOCK.format(mode=ends[0], trigger=ends[1])))
    assert rows(tmp_path / "out") == [("ann rows",)]


def test_the_clock_fires_without_rows(pipeline: Callable, spark: Any, add: Callable, tmp_path: Path) -> None:
    add(click("ann", 0))
    topology = pipeline(CLOCK.format(mode="{type: continuous, poll_interval: 100ms}", trigger="{type: continuous}"))
    stop = threading.Event()
    running = threading.Thread(target=lambda: SparkEngine(spark).run(topology, RunOptions(stop=stop)))
    running.start()
    deadline = time.monotonic() + 300
    while len(rows(tmp_path / "out")) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    stop.set()
    running.join(60)
    assert rows(tmp_path / "out") == [("ann clock",), ("ann rows",)]


class Same(BucketFunction):
    output = {
        "k": "int64", "d": "decimal(3,2)", "z": "timestamp", "l": "timestamp_ntz", "y": "date", "a": "list<string>",
        "m": "map<string, int32>", "s": "struct<f: int64>", "b": "binary", "n": "string", "i": "int64",
    }  # fmt: skip
    state = {"k": "int64"}

    def process(self, keys: Any, rows: Any, state: Any, moment: Any) -> BucketResult:
        return BucketResult(state, rows)


def test_every_type_goes_there_and_back(spark: Any, result: Callable) -> None:
    text = """SELECT id AS k, 1.50BD AS d, TIMESTAMP '2026-01-01 00:00:00.000001' AS z, TIMESTAMP_NTZ '2026-01-01 00:00:00' AS l,
              DATE '2026-01-01' AS y, array('a', null) AS a, map('k', 1) AS m, named_struct('f', 1L) AS s,
              CAST('x' AS binary) AS b, CAST(NULL AS string) AS n, if(id = 0, NULL, 9007199254740993) AS i FROM range(3)"""
    made = result(Process(key_by="k", function=Same), rows=text)
    assert sorted(({key: row[key] for key in Same.output} for row in made), key=lambda row: row["k"]) == [
        row.asDict(True) for row in spark.sql(text).collect()
    ]
