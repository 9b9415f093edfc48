"""Runs a plugin's transform and the same by hand with `mapInArrow`, in turns in one session. Prints the seconds of each."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import millstream
from millstream.clients.storage import open_storage
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.components.context import NodeContext

ROWS = 8_000_000
_TURNS = 12
"""The first turn is not counted."""


@millstream.plugin("bench.sum")
class Sum(millstream.ArrowTransform):
    """Adds the sum of two columns."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema.append(pa.field("c", pa.int64()))

    def process(self, batch: pa.RecordBatch, task: millstream.Task) -> pa.RecordBatch:
        return batch.append_column("c", pc.add(batch.column("a"), batch.column("b")))


@millstream.plugin("bench.first")
class First(millstream.ArrowTransform):
    """The first part of a text."""

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema.append(pa.field("c", pa.string()))

    def process(self, batch: pa.RecordBatch, task: millstream.Task) -> pa.RecordBatch:
        return batch.append_column("c", pc.utf8_slice_codeunits(batch.column("t"), 0, 4))


def sum_by_hand(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.append_column("c", pc.add(batch.column("a"), batch.column("b")))


def first_by_hand(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.append_column("c", pc.utf8_slice_codeunits(batch.column("t"), 0, 4))


def main() -> None:
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    numbers = session.spark.range(ROWS, numPartitions=2).selectExpr("id AS a", "id * 2 AS b").persist()
    texts = session.spark.range(ROWS // 4, numPartitions=2).selectExpr("concat('number ', id) AS t").persist()
    numbers.count(), texts.count()
    by_hand: Any = (sum_by_hand, first_by_hand)
    works: dict[str, tuple[Any, Any]] = {
        f"two integers, {ROWS // 1_000_000} M rows": (_applied(Sum(), numbers), numbers.mapInArrow(by_hand[0], "a long, b long, c long")),
        f"a text, {ROWS // 4_000_000} M rows": (_applied(First(), texts), texts.mapInArrow(by_hand[1], "t string, c string")),
    }
    found: dict[str, dict[str, list[float]]] = {}
    for work, (ours, theirs) in works.items():
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for turn in range(_TURNS):
            pair = (("ours", ours), ("theirs", theirs))
            for whose, frame in pair if turn % 2 else reversed(pair):
                taken = _seconds(frame)
                if turn:
                    times[whose].append(taken)
        found[work] = times
    session.close()
    print(json.dumps(found))


def _applied(transform: millstream.ArrowTransform, frame: Any) -> Any:
    """The frame as a pipeline builds it."""
    folder = tempfile.mkdtemp(prefix="millstream-bench-")
    context = NodeContext("measured", Path(folder), open_storage(folder))
    return transform.open(context).apply({"rows": frame}, context)


def _seconds(frame: Any) -> float:
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
