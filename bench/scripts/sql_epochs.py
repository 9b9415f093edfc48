"""Epochs of incremental queries: `sql_epochs.py small QUERY EPOCHS` over 100,000 rows of state, or `sql_epochs.py large QUERY EPOCHS`.

Prints the seconds of each epoch by phase; for large epochs also those of what people write by hand: the same query computed from a table,
for several sizes of the table, and, if MILLSTREAM_JARS has the jars of Delta (`delta-spark_4.1_2.13`, `delta-storage`), results that are
merged into a Delta table. The maintained result is compared with the batch answer over all rows.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from millstream.clients.storage import LocalStorage
from millstream.engine.incremental.analysis import Analysis, query_over
from millstream.engine.incremental.arrivals import Feed, arrivals
from millstream.engine.incremental.maintenance import Maintenance
from millstream.engine.sessions import INCREMENTAL
from millstream.jvm.session import SessionOptions, begin

QUERIES = {
    "one": "SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k",
    "two": "SELECT n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) GROUP BY n",
    "join": "SELECT u.g, sum(t.v) AS s, count(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY u.g",
    "five": """
        WITH a AS (SELECT u.g, sum(t.v) AS s, count(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY u.g),
             b AS (SELECT n, count(*) AS c, max(s) AS m FROM a GROUP BY n)
        SELECT a.g, a.s, b.c, b.m FROM a LEFT JOIN b ON a.n = b.n
    """,
}


MERGED = {
    "two": ("SELECT k, count(*) AS n FROM t GROUP BY k", "k", "SELECT n, count(*) AS c FROM {} GROUP BY n"),
    "join": (QUERIES["join"], "g", "SELECT * FROM {}"),
}
"""For each query: what is merged, by which column, and what is computed from the table."""
SIZES = (10_000_000, 25_000_000, 50_000_000, 100_000_000)
_TIMED = 4
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def tables(spark: SparkSession, query: str, epoch: int, rows: int, keys: int) -> dict[str, DataFrame]:
    """The rows that arrive in an epoch."""
    found = {"t": spark.range(rows).selectExpr(f"CAST(pmod(hash(id, {epoch}), {keys}) AS BIGINT) AS k", "id AS v")}
    if " u " in QUERIES[query]:
        found["u"] = spark.range(keys if epoch == 0 else 0).selectExpr("id AS k", "id % 1000 AS g")
    return found


def maintained(spark: SparkSession, query: str, epochs: int, rows: Callable[[int], int], keys: int) -> list[dict[str, float]]:
    first = tables(spark, query, 0, 1, keys)
    feeds = {name: Feed(frame.schema) for name, frame in first.items()}
    kept = Maintenance("q", Analysis(spark, feeds, query_over(QUERIES[query])), LocalStorage(Path(tempfile.mkdtemp())), 2)
    kept.prepare(())
    times, result = [], dict[tuple[Any, ...], tuple[Any, ...]]()
    places = [kept.view.names.index(name) for name in kept.key or ()]
    for epoch in range(epochs):
        frame = arrivals(tables(spark, query, epoch, rows(epoch), keys))
        moments = [time.perf_counter()]
        changes = kept.step(frame, epoch, "")
        moments.append(time.perf_counter())
        changed = changes.collect()
        moments.append(time.perf_counter())
        kept.write(epoch, "")
        moments.append(time.perf_counter())
        kept.finish(epoch, "")
        moments.append(time.perf_counter())
        parts = [later - earlier for earlier, later in pairwise(moments)]
        times.append({**dict(zip(("bind", "compute", "log", "merge"), parts, strict=True)), "epoch": moments[-1] - moments[0]})
        for *row, op in changed:
            key = tuple(row[place] for place in places)
            if op == "d":
                del result[key]
            else:
                result[key] = tuple(row)
    kept.close()
    _compare(spark, query, [tables(spark, query, epoch, rows(epoch), keys) for epoch in range(epochs)], result.values())
    return times


def _compare(spark: SparkSession, query: str, arrived: list[dict[str, DataFrame]], result: Iterable[tuple[Any, ...]]) -> None:
    """Fail if the maintained result is not the batch answer over all rows."""
    for name in arrived[0]:
        reduce(DataFrame.union, [each[name] for each in arrived]).createOrReplaceTempView(name)
    expected = sorted(tuple(row) for row in spark.sql(QUERIES[query]).collect())
    assert sorted(result) == expected, "the maintained result differs from the batch answer"


def recomputed(spark: SparkSession, query: str, sizes: Iterable[int], rows: int, keys: int) -> dict[int, list[float]]:
    """What people write without incremental queries: append the rows to a table, and compute the result from all of it. For each size the
    table is filled first, and then some epochs are timed.
    """
    folder, times, filled = tempfile.mkdtemp(), {}, 0
    for size in sizes:
        _append(folder, tables(spark, query, filled, size - filled, keys))
        filled, found = size, []
        for epoch in range(1, _TIMED + 1):
            arrived, started = tables(spark, query, size + epoch, rows, keys), time.perf_counter()
            _append(folder, arrived)
            for name in arrived:
                spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
            spark.sql(QUERIES[query]).collect()
            found.append(time.perf_counter() - started)
        times[size] = found[1:]
    return times


def _append(folder: str, arrived: dict[str, DataFrame]) -> None:
    for name, frame in arrived.items():
        frame.write.mode("append").parquet(f"{folder}/{name}")


def merged(spark: SparkSession, query: str, epochs: int, rows: int, keys: int) -> list[float]:
    """The other way: the sums of an epoch are merged into a Delta table; an aggregate over it is computed from the table."""
    folder, times = tempfile.mkdtemp(), []
    partial, key, above = MERGED[query]
    for epoch in range(epochs):
        arrived, started = tables(spark, query, epoch, rows, keys), time.perf_counter()
        arrived["t"].createOrReplaceTempView("t")
        if "u" in arrived and epoch == 0:
            arrived["u"].write.parquet(f"{folder}/u")
            spark.read.parquet(f"{folder}/u").createOrReplaceTempView("u")
        if epoch == 0:
            spark.sql(partial).write.format("delta").save(f"{folder}/sums")
        else:
            new = [name for name in spark.sql(partial).columns if name != key]
            sets = ", ".join(f"{name} = old.{name} + new.{name}" for name in new)
            match = f"MERGE INTO delta.`{folder}/sums` AS old USING ({partial}) AS new ON old.{key} = new.{key}"
            spark.sql(f"{match} WHEN MATCHED THEN UPDATE SET {sets} WHEN NOT MATCHED THEN INSERT *")
        spark.sql(above.format(f"delta.`{folder}/sums`")).collect()
        times.append(time.perf_counter() - started)
    return times


def main(size: str, query: str, epochs: int) -> None:
    delta = [str(path) for path in Path(os.environ.get("MILLSTREAM_JARS") or os.devnull).glob("delta-*.jar")]
    more = {**_DELTA, "spark.jars": ",".join(delta)} if delta and size == "merge" else {}
    session = begin(SessionOptions(master="local[2]", profile="long", conf=more or INCREMENTAL)).finish()
    try:
        if size == "merge":
            print(json.dumps({"merged": merged(session.spark, query, epochs, 500_000, 100_000) if delta else []}))
            return
        if size == "small":
            print(json.dumps({"ours": maintained(session.spark, query, epochs, lambda epoch: 100 if epoch else 100_000, 20_000)}))
            return
        ours = maintained(session.spark, query, epochs, lambda _: 500_000, 100_000)
        print(json.dumps({"ours": ours, "theirs": recomputed(session.spark, query, SIZES, 500_000, 100_000)}))
    finally:
        session.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
