"""Rows with a random key, each looked up in Postgres and thrown away, in one session: ours, and a query per row by hand, in turns.

One key in eleven has no row. The server runs on the same cores. The first turn is not counted: it fills the workers' caches, and warms
everybody else.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
from pyspark.sql import SparkSession

from millstream.clients.postgres import Address
from millstream.dev.postgres import NAME, start_postgres
from millstream.engine.engine import SparkEngine
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

PIPELINE = """
connections: {{postgres: {{host: 127.0.0.1, port: {port}, database: {name}, user: {name}, password: {name}}}}}
sources:
  orders: {{type: generator, rows: {rows}, rows_per_epoch: {rows}, seed: 1,
           fields: {{id: {{type: sequence}}, user_id: {{type: uniform, min: 0, max: {most}}}}}}}
transforms:
  watched: {{type: dynamic_table, backend: postgres, key: user_id, columns: {{tier: string}}{cache}}}
  found: {step}
sinks: {{out: {{type: blackhole, from: found}}}}
settings: {{checkpoint: {folder}/ck}}
"""
CACHE = ", cache: {ttl: 1h, max_rows: 200000}"
GET = "{type: sql, sql: \"SELECT id, dynamic_table_get('watched', user_id).tier FROM orders\"}"
CHECK = "{type: sql, sql: \"SELECT id FROM orders WHERE dynamic_table_check('watched', user_id)\"}"
JOIN = '{type: sql, sql: "SELECT id, w.tier FROM orders o LEFT JOIN watched w ON o.user_id = w.user_id"}'
LOOKUP = "{type: lookup, from: orders, table: watched, on: {user_id: user_id}, select: [tier]}"
STEPS = {
    "nothing": ('{type: sql, sql: "SELECT id, user_id FROM orders"}', ""),
    "get": (GET, ""),
    "get, cached": (GET, CACHE),
    "check": (CHECK, ""),
    "join": (JOIN, ""),
    "lookup": (LOOKUP, ""),
    "lookup, cached": (LOOKUP[:-1] + CACHE + "}", ""),
}


def main(rows: int, entries: int, sample: int, turns: int) -> None:
    with start_postgres() as server:
        with psycopg.connect(server.address.text, autocommit=True) as connection:
            connection.execute("CREATE TABLE watched (user_id bigint PRIMARY KEY, tier text, updated_at timestamptz DEFAULT now())")
            connection.execute("INSERT INTO watched SELECT n, 'tier ' || mod(n, 7) FROM generate_series(0, %s) n", [entries - 1])
            connection.execute("ANALYZE watched")
        session = begin(SessionOptions(master="local[2]", profile="long")).finish()
        try:
            print(json.dumps(_measure(session.spark, server.port, server.address, rows, entries, sample, turns)))
        finally:
            session.close()


def _measure(spark: SparkSession, port: int, address: Address, rows: int, entries: int, sample: int, turns: int) -> dict[str, list[float]]:
    most = entries * 11 // 10
    ways: dict[str, Callable[[Path], None]] = {
        name: lambda folder, step=step, cache=cache: _ours(spark, port, rows, most, step, cache, folder)  # type: ignore[misc]  # one each
        for name, (step, cache) in STEPS.items()
    }
    ways["one per row"] = lambda folder: _by_hand(spark, address, sample, most)  # noqa: ARG005 — it keeps nothing
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            folder, started = Path(tempfile.mkdtemp()), time.perf_counter()
            way(folder)
            if turn:
                times[name].append(round(time.perf_counter() - started, 3))
            shutil.rmtree(folder, ignore_errors=True)
    return times


def _ours(spark: SparkSession, port: int, rows: int, most: int, step: str, cache: str, folder: Path) -> None:
    text = PIPELINE.format(port=port, name=NAME, rows=rows, most=most, step=step, cache=cache, folder=folder)
    SparkEngine(spark).run(loads(text).require(), RunOptions())


def _by_hand(spark: SparkSession, address: Address, rows: int, most: int) -> None:
    """One connection per task, one prepared query per row."""
    text = address.text

    def look_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with psycopg.connect(text, autocommit=True) as connection:
            for batch in batches:
                found = [
                    connection.execute("SELECT tier FROM watched WHERE user_id = %s", [key], prepare=True).fetchone()
                    for key in batch.column("user_id").to_pylist()
                ]
                tiers = pa.array([row[0] if row else None for row in found], pa.string())
                yield pa.RecordBatch.from_arrays([batch.column("id"), tiers], names=["id", "tier"])

    frame = spark.range(rows).selectExpr("id", f"cast(rand(1) * {most} as bigint) as user_id")
    frame.mapInArrow(look_up, "id long, tier string").write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 3)
