"""Epochs of 1,000 rows in turns: ours into nothing and into files, with and without fsync; theirs into Spark's own sinks.

The time of an epoch is that between the starts of two triggers, by Spark's progress: the mean of a run without its first third. `waits` is
what our epochs wait in fsync.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from millstream.engine.engine import SparkEngine
from millstream.engine.run import query as running_query
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

EPOCHS, TURNS = 60, 6
session = begin(SessionOptions(master="local[2]", profile="long")).finish()
spark = session.spark
running: Any = running_query  # the name that it imports is replaced here
count, fsync = running.count_epoch, os.fsync
waited: list[float] = []
seen: dict[int, float] = {}


def started(facts: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(facts["timestamp"]).timestamp()


def observe(facts: Mapping[str, Any], *rest: Any) -> None:
    seen[facts["batchId"]] = started(facts)
    count(facts, *rest)


def timed(descriptor: int) -> None:
    began = time.perf_counter()
    fsync(descriptor)
    waited.append(time.perf_counter() - began)


running.count_epoch, os.fsync = observe, timed  # type: ignore[assignment]  # what is waited for, without the noise of everything else


def per_epoch() -> float:
    first, last = EPOCHS // 3, EPOCHS - 1
    return (seen[last] - seen[first]) / (last - first)


def ours(sink: str, durability: str) -> float:
    folder = tempfile.mkdtemp()
    target = f"type: file, path: {folder}/out, format: parquet" if sink == "file" else "type: blackhole"
    topology = loads(
        f"sources: {{g: {{type: generator, rows: {1000 * EPOCHS}, rows_per_epoch: 1000, fields: {{id: {{type: sequence}}}}}}}}\n"
        "transforms: {some: {type: sql, sql: SELECT id FROM g WHERE id % 3 = 0}}\n"
        f"sinks: {{out: {{from: some, {target}}}}}\nsettings: {{checkpoint: {folder}/ck, durability: {durability}}}"
    ).require()
    seen.clear()
    waited.clear()
    SparkEngine(spark).run(topology, RunOptions())
    return per_epoch()


def theirs(sink: str) -> float:
    folder = tempfile.mkdtemp()
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
    writer = stream.selectExpr("value AS id").where("id % 3 = 0").writeStream.option("checkpointLocation", f"{folder}/ck")
    writer = writer.format("parquet").option("path", f"{folder}/out") if sink == "file" else writer.format("noop")
    query = writer.trigger(processingTime="0 seconds").start()
    seen.clear()
    while EPOCHS not in seen:
        for progress in query.recentProgress:
            if progress["batchId"] not in seen:
                seen[progress["batchId"]] = started(progress)
        time.sleep(0.2)
    query.stop()
    return per_epoch()


WAYS: dict[str, Callable[[str], float]] = {
    "theirs": theirs,
    "process": lambda sink: ours(sink, "process"),
    "fsync": lambda sink: ours(sink, "fsync"),
}
times: dict[str, dict[str, list[float]]] = {sink: {way: [] for way in WAYS} for sink in ("nothing", "file")}
waits: dict[str, list[float]] = {sink: [] for sink in times}
for turn in range(TURNS):
    for sink, found in times.items():
        for name, way in WAYS.items():
            seconds = way(sink)
            if turn:
                found[name].append(seconds)
                waits[sink] += [sum(waited) / EPOCHS] if name == "fsync" else []
session.close()
print(json.dumps({"epochs": times, "waits": waits}))
