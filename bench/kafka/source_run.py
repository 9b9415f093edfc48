"""Messages of a Kafka topic with four partitions, read, parsed and thrown away in one session: ours and by hand in turns.

The broker runs on the same cores. CPU is that of the process with Spark in it: the broker's is left out.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.kafka.rows import AVRO, COLUMNS, fill, new_topic
from millstream.dev.kafka import start_broker
from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

SPARK_SCHEMA = "id BIGINT, user STRING, amount DOUBLE, at TIMESTAMP, country STRING, note STRING"


def main(kind: str, rows: int, turns: int) -> None:
    with start_broker() as broker:
        registry = _registry() if kind == "avro" else None
        url = registry.url if registry else ""
        new_topic(broker.address, "rows", 4)
        fill(broker.address, "rows", rows, url)
        servers = {process.pid for process in psutil.Process().children()}
        session = begin(SessionOptions(master="local[2]", profile="long", extras=("kafka",))).finish()
        try:
            times = _measure(session.spark, kind, broker.address, url, turns, servers)
        finally:
            session.close()
            if registry:
                registry.stop()
    print(json.dumps({"rows": rows, **times}))


def _measure(spark: SparkSession, kind: str, address: str, url: str, turns: int, servers: set[int]) -> dict[str, Any]:
    ways: dict[str, Callable[[Path], None]] = {
        "ours": lambda folder: _ours(spark, kind, address, url, folder),
        "theirs": lambda folder: _by_hand(spark, kind, address, folder),
    }
    times: dict[str, dict[str, list[float]]] = {name: {"wall": [], "cpu": []} for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            folder, started, cpu = Path(tempfile.mkdtemp()), time.perf_counter(), _cpu(servers)
            way(folder)
            if turn:
                times[name]["wall"].append(time.perf_counter() - started)
                times[name]["cpu"].append(_cpu(servers) - cpu)
            shutil.rmtree(folder, ignore_errors=True)
    return times


def _ours(spark: SparkSession, kind: str, address: str, url: str, folder: Path) -> None:
    how = f"format: avro, schema_registry: '{url}'" if kind == "avro" else f"format: json, schema: {json.dumps(COLUMNS)}"
    source = f"{{type: kafka, bootstrap_servers: '{address}', topic: rows, {how}, mode: {{type: bounded}}}}"
    text = f"sources: {{m: {source}}}\nsinks: {{out: {{type: blackhole, from: m}}}}\nsettings: {{checkpoint: {folder}/ck}}"
    SparkEngine(spark).run(loads(text).require(), RunOptions())


def _by_hand(spark: SparkSession, kind: str, address: str, folder: Path) -> None:
    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", "rows")
    frame = stream.option("startingOffsets", "earliest").load()
    writer = _parsed(frame, kind).select("v.*").writeStream.format("noop").option("checkpointLocation", f"{folder}/ck")
    writer.trigger(availableNow=True).start().awaitTermination()


def _parsed(frame: DataFrame, kind: str) -> DataFrame:
    if kind == "avro":
        from pyspark.sql.avro.functions import from_avro

        return frame.select(from_avro(F.expr("substring(value, 6)"), AVRO).alias("v"))
    return frame.select(F.from_json(F.col("value").cast("string"), SPARK_SCHEMA).alias("v"))


def _registry() -> Any:
    from millstream.dev.registry import start_registry

    return start_registry()


def _cpu(servers: set[int]) -> float:
    """This process and its children, Spark's JVM among them, without the servers."""
    me = psutil.Process()
    children = [child for child in me.children() if child.pid not in servers]
    return sum(sum(process.cpu_times()[:2]) for process in [me, *children])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
