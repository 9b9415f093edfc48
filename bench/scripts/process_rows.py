"""Keyed totals, 400,000 rows over 100,000 keys an epoch: by key, by bucket, and with Spark's function per key on a sample. Prints JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millstream import BucketFunction, BucketResult, ProcessFunction, ValueState
from millstream.clients.storage import LocalStorage
from millstream.plan.components import NodeContext
from millstream.plan.functions import FunctionRef
from millstream.testing import session
from millstream.transforms.process import Process

KEYS, ROWS, SAMPLE = 100_000, 400_000, 40_000
EPOCHS = 4
KINDS = ("by key", "by bucket", "per key")


class Totals(ProcessFunction):
    output = {"user": "int64", "total": "int64"}
    state = {"total": ValueState("int64")}

    def process(self, key: Any, rows: pa.RecordBatch, state: Any, timers: Any) -> Any:
        total = state["total"].get(0) + pc.sum(rows["n"]).as_py()
        state["total"].set(total)
        return {"user": key, "total": total}


class WholeTotals(BucketFunction):
    output = {"user": "int64", "total": "int64"}
    state = {"user": "int64", "total": "int64"}

    def process(self, keys: tuple[str, ...], rows: pa.Table, state: pa.Table, moment: Any) -> BucketResult:
        new = rows.select(["user", "n"]).rename_columns(["user", "total"])
        summed = pa.concat_tables([state, new]).group_by("user").aggregate([("total", "sum")])
        totals = summed.select(["user", "total_sum"]).rename_columns(["user", "total"])
        return BucketResult(totals, totals.filter(pc.is_in(totals["user"], new["user"])))


def per_key(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    import pandas as pd  # type: ignore[import-untyped]  # no stubs

    total = (state.get[0] if state.exists else 0) + sum(int(frame["n"].sum()) for frame in frames)
    state.update((total,))
    yield pd.DataFrame({"user": [key[0]], "total": [total]})


def main(buckets: int) -> None:
    spark = session()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for epoch in range(EPOCHS):
            _write(folder / "large" / f"{epoch}.parquet", ROWS, epoch)
        for epoch in range(2):
            _write(folder / "small" / f"{epoch}.parquet", SAMPLE, epoch)
        times = {kind: _times(spark, folder, kind, buckets) for kind in (KINDS)}
    print(json.dumps(times))


def _write(path: Path, rows: int, seed: int) -> None:
    path.parent.mkdir(exist_ok=True)
    dice = np.random.default_rng(seed)
    pq.write_table(pa.table({"user": dice.integers(0, KEYS, rows), "n": dice.integers(0, 100, rows)}), path)


def _times(spark: Any, folder: Path, kind: str, buckets: int) -> list[float]:
    """Seconds of the warm epochs: all but the first."""
    source = spark.readStream.schema("user long, n long").option("maxFilesPerTrigger", 1)
    frame = source.parquet(str(folder / ("small" if kind == "per key" else "large")))
    if kind == "per key":
        made = frame.groupBy("user").applyInPandasWithState(per_key, "user long, total long", "total long", "update", "NoTimeout")
    else:
        function = Totals if kind == "by key" else WholeTotals
        process = Process(key_by=("user",), function=FunctionRef(function), buckets=buckets)
        made = process.apply({"rows": frame}, NodeContext("totals", folder, LocalStorage(folder / "node"))).drop("_side")
    writer = made.writeStream.format("noop").outputMode("update" if kind == "per key" else "append")
    query = writer.option("checkpointLocation", str(folder / f"ck {kind}")).trigger(availableNow=True).start()
    started = time.monotonic()
    while query.isActive and time.monotonic() - started < 600:
        time.sleep(0.2)
    return [report["durationMs"]["triggerExecution"] / 1000 for report in query.recentProgress if report["numInputRows"]][1:]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 32)
