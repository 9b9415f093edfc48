"""One session and one broker, both ways in turns: `kafka_sink.py rows ROWS`, or `kafka_sink.py epochs COUNT` for small ones.

Prints seconds (wall, and CPU without the broker's) of every run, and where those of the exactly-once sink went.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.figures import cpu_of

from millstream.connectors.kafka.sink import KafkaSinkRun
from millstream.connectors.kafka.write import publisher
from millstream.dev.kafka import start_broker
from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

PIPELINE = """
name: bench{turn}
sources:
  g:
    type: generator
    rows: {rows}
    rows_per_epoch: {size}
    fields:
      id: {{type: sequence}}
      user: {{type: choice, values: [ann, bob, cleo, dan, eve, finn, gus, hal]}}
      amount: {{type: uniform, min: 1, max: 100}}
      at: {{type: timestamp, start: 2026-01-01T00:00:00Z, step: 10ms}}
      text: {{type: template, template: "an order of {{user}} over {{amount}}, number {{id}}, and what else there is to say about it"}}
transforms:
  orders: {{type: sql, sql: "SELECT *, id % 1000 AS k FROM g"}}
sinks:
  out:
    type: kafka
    from: orders
    bootstrap_servers: "{address}"
    topic: "t{turn}"
    key: k
    create: {{partitions: 4}}
    guarantee: {guarantee}
settings: {{checkpoint: "{folder}"}}
"""
TURNS = 4


def cpu() -> float:
    """Seconds of this process and of all that it has started, but for the broker."""
    return cpu_of({os.getpid()}, frozenset({broker.process.pid if broker.process else 0}))


def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            parts[name] += time.perf_counter() - started

    return wrapped


def run(guarantee: str, turn: str, rows: int, size: int) -> dict[str, Any]:
    parts.clear()
    names = {"rows": rows, "size": size, "address": broker.address, "turn": turn, "guarantee": guarantee, "folder": tempfile.mkdtemp()}
    topology = loads(PIPELINE.format(**names)).require()
    before, started = cpu(), time.perf_counter()
    SparkEngine(session.spark).run(topology, RunOptions())
    return {"wall": time.perf_counter() - started, "cpu": cpu() - before, "parts": dict(parts)}


def main(rows: int, size: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {"exactly_once": [], "at_least_once": []}
    for turn in range(TURNS):
        for guarantee, runs in found.items():
            taken = run(guarantee, f"{guarantee}{turn}", rows, size)
            runs.extend([taken] if turn else [])
    return found


parts: dict[str, float] = defaultdict(float)
KafkaSinkRun.stage = timed("stage", KafkaSinkRun.stage)  # type: ignore[method-assign]  # to be timed
KafkaSinkRun.commit = timed("commit", KafkaSinkRun.commit)  # type: ignore[method-assign]  # to be timed
publisher._round = timed("lanes", publisher._round)
with start_broker() as broker:
    session = begin(SessionOptions(master="local[2]", profile="long", extras=("kafka",))).finish()
    kind, amount = sys.argv[1], int(sys.argv[2])
    result = main(amount, amount) if kind == "rows" else main(100 * amount, 100)
    session.close()
print(json.dumps(result))
