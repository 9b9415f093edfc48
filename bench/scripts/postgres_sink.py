"""One session and one server, each way in turns: `postgres_sink.py ROWS TURNS`. Prints what every run took."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.figures import cpu_of

from millstream.dev.postgres import NAME, start_postgres
from millstream.engine.engine import SparkEngine
from millstream.jvm.jars import fetch_jars
from millstream.jvm.java import find_java
from millstream.jvm.lock import Jar
from millstream.jvm.machine import find_spark
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.run_options import RunOptions
from millstream.spec.loader import loads

JDBC = Jar("org.postgresql", "postgresql", "42.7.8", 1116727, "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7")
COLUMNS = "id bigint{key}, name text, amount double precision, at timestamptz, n integer, note text"
PIPELINE = """
name: bench{turn}
sources:
  rows: {{type: file, path: "{data}", format: parquet, mode: {{type: bounded}}}}
sinks:
  pg: {{type: postgres, from: rows, host: 127.0.0.1, port: {port}, database: {name}, user: {name}, password: {name}, table: t, {options}}}
settings: {{checkpoint: "{folder}"}}
"""
UPSERT = """INSERT INTO public.t VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE
    SET name = EXCLUDED.name, amount = EXCLUDED.amount, at = EXCLUDED.at, n = EXCLUDED.n, note = EXCLUDED.note"""


def cpu() -> tuple[float, float]:
    """Seconds of the client and of the server."""
    shell = server.shell.pid if server.shell else 0
    return cpu_of({os.getpid()}, frozenset({shell})), cpu_of({shell})


def make_rows(folder: Path, rows: int) -> None:
    texts = ["id", "concat('user ', id % 1000) AS name", "id * 0.5D AS amount", "timestamp_micros(id * 1000) AS at"]
    texts += ["CAST(id % 100 AS INT) AS n", "concat('a note about row number ', id) AS note"]
    spark.range(rows, numPartitions=4).selectExpr(*texts).write.parquet(str(folder))


def make_table(keyed: bool) -> None:
    """Without a key for rows that are appended; with one, and half of the rows, for those that are upserted."""
    with psycopg.connect(server.address.text, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS public.t")
        connection.execute(f"CREATE TABLE public.t ({COLUMNS.format(key=' PRIMARY KEY' if keyed else '')})")
        if keyed:
            connection.execute(f"INSERT INTO public.t SELECT g, 'old', 0, now(), 0, 'old' FROM generate_series(0, {ROWS - 1}, 2) g")
        connection.execute("VACUUM ANALYZE public.t")
        connection.execute("CHECKPOINT")


def ours(turn: str, options: str) -> int:
    names = {"turn": turn, "data": data, "port": server.port, "name": NAME, "options": options, "folder": tempfile.mkdtemp()}
    SparkEngine(spark).run(loads(PIPELINE.format(**names)).require(), RunOptions())
    return ROWS


def jdbc(careful: bool) -> int:
    """As Spark's documentation has it; or with what careful users add: large batches, rewritten into inserts of many rows."""
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{NAME}{'?reWriteBatchedInserts=true' if careful else ''}"
    login = {"user": NAME, "password": NAME, "driver": "org.postgresql.Driver", **({"batchsize": "10000"} if careful else {})}

    def write(frame: Any, epoch: int) -> None:
        frame.write.format("jdbc").options(url=url, dbtable="public.t", **login).mode("append").save()

    stream = spark.readStream.schema(spark.read.parquet(str(data)).schema).parquet(str(data)).writeStream.foreachBatch(write)
    stream.option("checkpointLocation", tempfile.mkdtemp()).trigger(availableNow=True).start().awaitTermination()
    return ROWS


def executemany() -> int:
    table = pq.read_table(data).slice(0, ROWS // 10)
    with psycopg.connect(server.address.text) as connection, connection.cursor() as cursor:
        for batch in table.to_batches(10_000):
            cursor.executemany(UPSERT, [tuple(row.values()) for row in batch.to_pylist()])
    return int(table.num_rows)


def taken(work: Callable[[], int], keyed: bool) -> dict[str, float]:
    make_table(keyed)
    (client, served), started = cpu(), time.perf_counter()
    rows = work()
    wall, (client_after, served_after) = time.perf_counter() - started, cpu()
    return {"rows": rows, "wall": wall, "client": client_after - client, "server": served_after - served}


ROWS = int(sys.argv[1])
(driver,) = fetch_jars([JDBC], find_java(os.environ), lambda _: None, os.environ, find_spark())
with start_postgres(settings=("shared_buffers=512MB", "max_wal_size=4GB")) as server:
    session = begin(SessionOptions(master="local[2]", profile="long", conf={"spark.jars": str(driver)})).finish()
    spark = session.spark
    data = Path(tempfile.mkdtemp()) / "rows"
    make_rows(data, ROWS)
    found: dict[str, list[dict[str, float]]] = {}
    for turn in range(int(sys.argv[2]) + 1):
        ways: dict[str, Callable[[], int]] = {
            "ours, append": partial(ours, f"a{turn}", "mode: append"),
            "JDBC, append": partial(jdbc, careful=False),
            "JDBC with care, append": partial(jdbc, careful=True),
            "ours, upsert": partial(ours, f"u{turn}", "primary_key: id"),
            "executemany, upsert": executemany,
        }
        for name, work in ways.items():
            run = taken(work, keyed=name.endswith("upsert"))
            found.setdefault(name, []).extend([run] if turn else [])  # the first turn warms up
    session.close()
print(json.dumps(found))
