"""10 M generated rows of four fields to nowhere."""

from __future__ import annotations

import json
import tempfile
import time

from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

PIPELINE = """
sources:
  clicks:
    type: generator
    rows: 10_000_000
    rows_per_epoch: 10_000_000
    seed: 7
    fields:
      id: {type: sequence}
      user: {type: choice, values: [ann, bob], weights: [3, 1]}
      amount: {type: uniform, min: 1, max: 100}
      at: {type: timestamp, start: 2026-01-01T00:00:00Z, step: 10ms, jitter: 1s}
sinks: {out: {type: blackhole, from: clicks}}
"""
session = begin(SessionOptions(master="local[2]", profile="long")).finish()
times = []
for turn in range(6):
    topology = loads(PIPELINE + f"settings: {{checkpoint: {tempfile.mkdtemp()}}}").require()
    started = time.perf_counter()
    SparkEngine(session.spark).run(topology, RunOptions())
    if turn:
        times.append(time.perf_counter() - started)
session.close()
print(json.dumps(times))
