"""A transform on a real stream whose epochs are cut by hand: one file per epoch, in the order of their times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.clients.storage import LocalStorage
from millstream.engine.lowering.nodes import visible
from millstream.plan.components import NodeContext, Transform
from millstream.plan.nodes import make_node
from millstream.worker.buckets import from_bytes, to_bytes
from millstream.worker.processing import Moment, as_micros

Row = dict[str, Any]


class Stream:
    """Input files, a checkpoint, and what came out epoch by epoch. Running again goes on where the last run stopped."""

    def __init__(self, spark: Any, folder: Path, schema: pa.Schema, delay: str | None = "0 seconds", time: str = "at") -> None:
        self.spark, self.folder, self.schema, self.delay, self.time = spark, folder, schema, delay, time
        self._count = 0
        (folder / "in").mkdir(parents=True, exist_ok=True)

    def add(self, rows: Sequence[Row]) -> None:
        path = self.folder / "in" / f"{self._count:05}.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), self.schema), path)
        os.utime(path, (1_700_000_000 + self._count, 1_700_000_000 + self._count))
        self._count += 1

    def frame(self, transform: Transform, isolate: bool = False, node: str = "step") -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        reader = self.spark.readStream.schema(from_arrow_schema(self.schema)).option("maxFilesPerTrigger", 1)
        frame = reader.parquet(str(self.folder / "in"))
        if self.delay is not None:
            frame = frame.withWatermark(self.time, self.delay)
        context = NodeContext(node, self.folder, LocalStorage(self.folder / "node"), isolate=isolate)
        return transform.open(context).apply({"rows": frame}, context)

    def run(self, transform: Transform, *, isolate: bool = False, side: Transform | None = None, node: str = "step") -> list[list[Row]]:
        """The rows of the epochs that are new since the last run."""
        found: list[list[Row]] = []
        frame = self.frame(transform, isolate, node)
        seen = visible(frame, make_node("step", transform))
        if side is not None:
            seen = side.apply({"step": frame}, NodeContext("side", self.folder, LocalStorage(self.folder / "node")))
        writer = seen.writeStream.foreachBatch(lambda rows, _: found.append([row.asDict(True) for row in rows.collect()]))
        query = writer.option("checkpointLocation", str(self.folder / "ck")).trigger(availableNow=True).start()
        query.awaitTermination(120)
        if query.isActive:
            query.stop()
            raise AssertionError("the stream did not end")
        return found


def flat(epochs: list[list[Row]]) -> list[Row]:
    return [row for rows in epochs for row in rows]


class Bucket:
    """One bucket without Spark: its state goes through bytes between epochs, as it does in a checkpoint."""

    def __init__(self, function: type, schema: pa.Schema, keys: tuple[str, ...] = ("user",), *, isolate: bool = False) -> None:
        from millstream.transforms.process import Process

        self.schema = schema
        self.runner = Process(key_by=keys, function=function).runner(function(), schema, ("at",), isolate)
        self.blob: bytes | None = None
        self.event: int | None = None
        self.clock: int | None = None

    def epoch(self, rows: Sequence[Row], watermark: datetime | None = None, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> list[Row]:
        """What comes out of an epoch; the state is as after it."""
        moment = Moment(as_micros(watermark) if watermark else 0, as_micros(now))
        table = pa.Table.from_pylist(list(rows), self.schema) if rows else None
        visit = self.runner.visit(table, from_bytes(self.blob) if self.blob else None, moment)
        self.blob = to_bytes(visit.state) if visit.state.num_rows else None
        self.event, self.clock = visit.event, visit.clock
        return [row for batch in visit.batches for row in batch.to_pylist()]

    @property
    def stored(self) -> list[Row]:
        return from_bytes(self.blob).to_pylist() if self.blob else []


def main_rows(rows: list[Row]) -> list[Row]:
    return [
        {k: v for k, v in row.items() if k not in {"_side", "_reject"}} for row in rows if not row.get("_side") and not row.get("_reject")
    ]
