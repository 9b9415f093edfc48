"""Epochs of one row from file to file, without and with state, as fast as they go: with `durability: fsync` and with `process`."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

EPOCHS, TURNS = 30, 3
PLANS = {"file to file": "SELECT id, id % 3 AS k FROM rows", "totals by key": "SELECT id % 3 AS k, count(*) AS n FROM rows GROUP BY id % 3"}
session = begin(SessionOptions(master="local[2]", profile="long")).finish()
folder = Path(tempfile.mkdtemp())
(folder / "in").mkdir()
for number in range(EPOCHS):
    (folder / f"in/{number:04d}.json").write_text(json.dumps({"id": number}))


waited: list[float] = []
fsync = os.fsync


def timed(descriptor: int) -> None:
    began = time.perf_counter()
    fsync(descriptor)
    waited.append(time.perf_counter() - began)


os.fsync = timed  # type: ignore[assignment]  # what is waited for, without the noise of everything else


def seconds(sql: str, durability: str) -> float:
    """Per epoch, without the first third."""
    place = tempfile.mkdtemp(dir=folder)
    topology = loads(
        f"sources: {{rows: {{type: file, path: {folder}/in, format: json, schema: {{id: int64}}, mode: {{type: bounded}}, "
        f"max_files_per_epoch: 1}}}}\ntransforms: {{step: {{type: sql, sql: {json.dumps(sql)}}}}}\n"
        f"sinks: {{out: {{type: file, from: step, path: {place}/out, format: json}}}}\n"
        f"settings: {{checkpoint: {place}/ck, durability: {durability}}}"
    ).require()
    marks: list[tuple[int, float]] = []

    def watch(snapshot: object) -> None:
        done = sum(query.epochs for query in snapshot.queries.values())  # type: ignore[attr-defined]
        if not marks or done > marks[-1][0]:
            marks.append((done, time.perf_counter()))

    SparkEngine(session.spark).run(topology, RunOptions(watch=watch))
    first = next(mark for mark in marks if mark[0] >= EPOCHS // 3)
    return (marks[-1][1] - first[1]) / (marks[-1][0] - first[0])


times: dict[str, dict[str, list[float]]] = {name: {"fsync": [], "process": []} for name in PLANS}
waits: dict[str, dict[str, float]] = {}
for turn in range(TURNS):
    for name, sql in PLANS.items():
        for durability, found in times[name].items():
            waited.clear()
            spent = seconds(sql, durability)
            if turn:
                found.append(spent)
            if durability == "fsync":
                waits[name] = {"calls": len(waited) / EPOCHS, "seconds": sum(waited) / EPOCHS}
session.close()
print(json.dumps({"epochs": times, "waits": waits}))
