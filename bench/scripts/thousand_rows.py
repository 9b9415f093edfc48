"""Epochs of 1,000 rows, as fast as they go: ours with a filter and a blackhole, theirs with the same plan and the noop sink."""

from __future__ import annotations

import json
import tempfile
import time

from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

EPOCHS = 60
session = begin(SessionOptions(master="local[2]", profile="long")).finish()
spark = session.spark


def ours() -> float:
    topology = loads(
        f"sources: {{g: {{type: generator, rows: {1000 * EPOCHS}, rows_per_epoch: 1000, fields: {{id: {{type: sequence}}}}}}}}\n"
        "transforms: {some: {type: sql, sql: SELECT id FROM g WHERE id % 3 = 0}}\n"
        f"sinks: {{out: {{type: blackhole, from: some}}}}\nsettings: {{checkpoint: {tempfile.mkdtemp()}}}"
    ).require()
    seen: list[float] = []
    epochs = 0

    def watch(snapshot: object) -> None:
        nonlocal epochs
        done = sum(query.epochs for query in snapshot.queries.values())  # type: ignore[attr-defined]
        if done > epochs:
            epochs = done
            seen.append(time.perf_counter())
            counts.append(done)

    counts: list[int] = []
    SparkEngine(spark).run(topology, RunOptions(watch=watch))
    half = next(i for i, count in enumerate(counts) if count >= EPOCHS // 3)
    return (seen[-1] - seen[half]) / (counts[-1] - counts[half])


def theirs() -> float:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
    frame = stream.selectExpr("value AS id").where("id % 3 = 0")
    query = frame.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp()).trigger(processingTime="0 seconds").start()
    marks: list[tuple[int, float]] = []
    while not marks or marks[-1][0] < EPOCHS:
        progress = query.lastProgress
        if progress and (not marks or progress["batchId"] > marks[-1][0]):
            marks.append((progress["batchId"], time.perf_counter()))
        time.sleep(0.05)
    query.stop()
    first = next(mark for mark in marks if mark[0] >= EPOCHS // 3)
    return (marks[-1][1] - first[1]) / (marks[-1][0] - first[0])


times: dict[str, list[float]] = {"ours": [], "theirs": []}
for turn in range(6):
    for name, way in (("ours", ours), ("theirs", theirs)):
        seconds = way()
        if turn:
            times[name].append(seconds)
session.close()
print(json.dumps(times))
