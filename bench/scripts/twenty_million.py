"""One session, ours and theirs in turns, so that both have the same JVM, warm to the same degree."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

FIELDS = "fields: {id: {type: sequence}, k: {type: sequence, step: 7}}"
WHERE, COLUMNS = "id % 3 = 0", ["id", "k * 2 AS d"]


def main(kind: str) -> None:
    rows = 20_000_000 if kind == "blackhole" else 10_000_000
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    spark = session.spark

    def ours(folder: Path) -> Callable[[], object]:
        files = [f"{name}: {{type: file, from: some, path: {folder}/{name}, format: parquet}}" for name in ("one", "two")]
        sinks = "{out: {type: blackhole, from: some}}" if kind == "blackhole" else f"{{{', '.join(files)}}}"
        topology = loads(
            f"sources: {{g: {{type: generator, rows: {rows}, rows_per_epoch: {rows}, {FIELDS}}}}}\n"
            f"transforms: {{some: {{type: sql, sql: 'SELECT {', '.join(COLUMNS)} FROM g WHERE {WHERE}'}}}}\n"
            f"sinks: {sinks}\nsettings: {{checkpoint: {folder}/ck}}"
        ).require()
        return lambda: SparkEngine(spark).run(topology, RunOptions())

    def by_hand(folder: Path, write: Callable[[DataFrame, int], None]) -> None:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2).load()
        frame = stream.selectExpr("value AS id", "value * 7 AS k").where(WHERE).selectExpr(*COLUMNS)
        writer = frame.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{folder}/ck")
        (writer.foreachBatch(write) if write is not none else writer.format("noop")).start().awaitTermination()

    def none(frame: DataFrame, epoch: int) -> None:
        raise AssertionError("stands for the native noop sink")

    def both(frame: DataFrame, folder: Path) -> None:
        frame.write.parquet(f"{folder}/one/{time.time_ns()}")
        frame.write.parquet(f"{folder}/two/{time.time_ns()}")

    def persisted(folder: Path) -> None:
        def write(frame: DataFrame, epoch: int) -> None:
            kept = frame.persist()
            both(kept, folder)
            kept.unpersist()

        by_hand(folder, write)

    def recomputed(folder: Path) -> None:
        by_hand(folder, lambda frame, _: both(frame, folder))

    ways: dict[str, Callable[[Path], Callable[[], object]]] = {"ours": ours, "theirs": lambda folder: lambda: by_hand(folder, none)}
    if kind == "parquet":
        ways = {
            "ours": ours,
            "persisted": lambda folder: lambda: persisted(folder),
            "recomputed": lambda folder: lambda: recomputed(folder),
        }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(7):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp())
            go = way(folder)
            started = time.perf_counter()
            go()
            if turn >= 2:
                times[name].append(time.perf_counter() - started)
            shutil.rmtree(folder)
    session.close()
    print(json.dumps(times))


main(sys.argv[1])
