"""A continuous run, stepped by hand: a file with one row per epoch, and somebody else's edits in between."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.observe.facts import Snapshot
from millstream.plan.topology import Topology

PIPELINE = """
connections: {connections}
sources:
  orders:
    type: file
    path: in
    format: json
    schema: {{id: int64, user_id: string}}
    mode: {{type: continuous, poll_interval: 50ms}}
    max_files_per_epoch: 1
transforms:
  watched: {table}
  seen: {{type: sql, sql: "{sql}"}}
sinks:
  out: {{type: memory, from: seen}}
"""
SQL = "SELECT id, dynamic_table_check('watched', user_id) AS here, dynamic_table_get('watched', user_id).tier FROM orders"
_SECONDS = 60


def step(
    topology: Topology, run: Callable[..., Any], rows: list[dict[str, Any]], edits: dict[int, Callable[[], None]]
) -> list[dict[str, Any]]:
    """Each row is an epoch of its own; `edits[n]` happens when n rows are through. What has come out, by id."""
    Path("in").mkdir(exist_ok=True)
    stop, started, written = threading.Event(), time.monotonic(), [0]

    def write() -> None:
        name, number = "in/.next", written[0]
        Path(name).write_text(json.dumps(rows[number]) + "\n")
        Path(name).rename(f"in/{number}.json")
        written[0] += 1

    def watch(snapshot: Snapshot) -> None:
        through = snapshot.nodes["out"].rows_in or 0 if "out" in snapshot.nodes else 0
        if through >= len(rows) or time.monotonic() - started > _SECONDS:
            stop.set()
        elif through == written[0]:
            edits.get(through, lambda: None)()
            write()

    run(topology, stop=stop, watch=watch)
    return sorted(topology.node("out").component.rows(), key=lambda row: row["id"])  # type: ignore[attr-defined]  # a memory sink
