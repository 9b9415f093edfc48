"""Stateful work in one session, ours and theirs in turns: a keyed sum, and tumbling, sliding and session windows with a key.

Both read generated rows in epochs of the same size with the same state store and the same number of partitions. The clock stops when the
last epoch with rows is committed: closing what is still open afterwards is something that the hand-written query does not do.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

EPOCHS = 8
ROWS = {"keyed": 20_000_000, "tumbling": 8_000_000, "sliding": 2_000_000, "session": 1_000_000}
WINDOWS = {
    "tumbling": ("{type: tumbling, size: 10s}", "window(at, '10 seconds')"),
    "sliding": ("{type: sliding, size: 10s, slide: 5s}", "window(at, '10 seconds', '5 seconds')"),
    "session": ("{type: session, gap: 5s}", "session_window(at, '5 seconds')"),
}
KEYS = {"keyed": 1000, "tumbling": 100, "sliding": 100, "session": 1000}
EVENT = "timestamp_micros(1704067200000000 + id * 20)"


def main(kind: str, turns: int) -> None:
    rows, keys = ROWS[kind], KEYS[kind]
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    spark = session.spark

    def ours(folder: Path) -> Path:
        if kind == "keyed":
            node = "{type: aggregate, from: rows, key_by: [k], aggregate: {total: sum(v), weight: sum(x)}}"
        else:
            totals = "aggregate: {total: sum(v), n: count(*)}, late: drop"
            node = f"{{type: window, from: rows, key_by: [k], window: {WINDOWS[kind][0]}, {totals}}}"
        columns = f"CAST(id % {keys} AS INT) AS k, id AS v, CAST(id AS DOUBLE) AS x, {EVENT} AS at"
        timed = "" if kind == "keyed" else ", event_time: {column: at, watermark: 1s}"
        topology = loads(
            f"sources: {{g: {{type: generator, rows: {rows * EPOCHS}, rows_per_epoch: {rows}, fields: {{id: {{type: sequence}}}}}}}}\n"
            f'transforms: {{rows: {{type: sql, sql: "SELECT {columns} FROM g"{timed}}}, done: {node}}}\n'
            f"sinks: {{out: {{type: blackhole, from: done}}}}\nsettings: {{checkpoint: {folder}/ck}}"
        ).require()
        threading.Thread(target=lambda: SparkEngine(spark).run(topology, RunOptions()), name="run").start()
        return folder / "ck/queries/done/commits"

    def by_hand(folder: Path) -> Path:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 2).load()
        frame = stream.selectExpr("value AS id").selectExpr(
            f"CAST(id % {keys} AS INT) AS k", "id AS v", "CAST(id AS DOUBLE) AS x", f"{EVENT} AS at"
        )
        mode = "update" if kind == "keyed" else "append"
        writer = _aggregated(frame, kind).writeStream.outputMode(mode).option("checkpointLocation", f"{folder}/ck").format("noop")
        writer.trigger(processingTime="0 seconds").start()
        return folder / "ck/commits"

    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    ways: dict[str, Callable[[Path], Path]] = {"ours": ours, "theirs": by_hand}
    for turn in range(turns + 1):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp())
            started = time.perf_counter()
            last = way(folder) / f"{EPOCHS - 1}"
            while not last.exists():
                time.sleep(0.005)
            if turn:
                times[name].append(time.perf_counter() - started)
            _stop(spark)
            shutil.rmtree(folder, ignore_errors=True)
    session.close()
    print(json.dumps({"rows": rows * EPOCHS, **times}))


def _stop(spark: SparkSession) -> None:
    """Ours closes what is open and ends; the other one is told to."""
    for thread in threading.enumerate():
        if thread.name == "run":
            thread.join()
    for query in spark.streams.active:
        query.stop()


def _aggregated(frame: DataFrame, kind: str) -> DataFrame:
    from pyspark.sql import functions as F

    if kind == "keyed":
        return frame.groupBy("k").agg(F.expr("sum(v)"), F.expr("sum(x)"))
    windowed = frame.withWatermark("at", "1 second").groupBy("k", F.expr(WINDOWS[kind][1]).alias("w"))
    return windowed.agg(F.expr("sum(v)"), F.expr("count(*)"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4)
