"""What runs in Python's workers for a `lookup`: batches are looked up side by side and handed on in their order, hits and misses counted.

Counts travel in one accumulator of Spark's. A task that runs twice, or a frame that is read twice, must not count twice: so a task does
not add to a sum, it puts its numbers down under its partition's, in place of earlier ones. The driver takes them at the end of an epoch.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import Diagnostic, RunError
from millstream.observe.remote_errors import carrying
from millstream.plan.components import NodeContext
from millstream.state.tables.reading import reader_of
from millstream.state.tables.spec import TableSpec, open_store
from millstream.transforms.batches import REJECT, REJECT_TYPE

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

Counts = dict[int, tuple[int, int]]
"""partition → hits and misses"""


class Latest:
    """What a partition said last counts. Spark knows it by its methods."""

    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 — Spark's name
        return {**value1, **value2}


@dataclass(frozen=True)
class Looking:
    """One node's work on the batches of a task."""

    spec: TableSpec
    schema: pa.Schema
    on: tuple[str, ...]
    select: tuple[tuple[str, str], ...]
    missing: str
    isolate: bool
    concurrency: int
    counter: Accumulator[Counts]

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task, hits, misses = TaskContext.get(), 0, 0
        try:
            for found, batch in self._in_order(batches):
                hits, misses = hits + found, misses + batch.num_rows - found
                yield from self._kept(batch)
        except Exception as error:
            error.add_note(f"millstream-node: {self.spec.name}")
            raise
        finally:
            self.counter.add({task.partitionId() if task else 0: (hits, misses)})

    def _in_order(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """As many at a time as are wanted. With one there is no thread."""
        if self.concurrency == 1:
            yield from (self._looked_up(batch, 0) for batch in batches)
            return
        lanes: SimpleQueue[int] = SimpleQueue()
        for lane in range(self.concurrency):
            lanes.put(lane)
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(self.concurrency))
            waiting: deque[Future[tuple[int, pa.RecordBatch]]] = deque()
            for batch in batches:
                waiting.append(pool.submit(self._in_lane, batch, lanes))
                if len(waiting) >= self.concurrency:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _in_lane(self, batch: pa.RecordBatch, lanes: SimpleQueue[int]) -> tuple[int, pa.RecordBatch]:
        lane = lanes.get()
        try:
            return self._looked_up(batch, lane)
        finally:
            lanes.put(lane)

    def _looked_up(self, batch: pa.RecordBatch, lane: int) -> tuple[int, pa.RecordBatch]:
        """How many rows have a match, and the batch with its new columns; the last one tells whether there is a match."""
        with carrying():
            found = reader_of(self.spec, self.schema, lane).find(*(batch.column(name) for name in self.on))
            there = pc.is_valid(found.positions)
            hits = pc.sum(there).as_py() or 0
            if hits < batch.num_rows and self.missing == "fail":
                raise RunError(self._absent(batch, there))
        added = {name: pc.take(found.rows[column].combine_chunks(), found.positions) for name, column in self.select}
        arrays = [*batch.columns, *added.values(), there]
        return hits, pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *added, "_there"])

    def _kept(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        there, rows = batch.column("_there"), batch.drop_columns(["_there"])
        if self.missing == "drop":
            yield rows.filter(there)
        elif not self.isolate:
            yield rows
        else:
            yield rows.append_column(pa.field(REJECT, REJECT_TYPE), self._rejects(rows, there))

    def _rejects(self, rows: pa.RecordBatch, there: pa.Array) -> pa.Array:
        given = rows.select([name for name in rows.schema.names if name not in dict(self.select)])
        found = [None if here else self._reject(given.slice(index, 1)) for index, here in enumerate(there.to_pylist())]
        return pa.array(found, REJECT_TYPE)

    def _reject(self, row: pa.RecordBatch) -> dict[str, str]:
        (values,) = row.to_pylist()
        return {"raw": json.dumps(values, default=str, ensure_ascii=False), "error": self._sentence(values)}

    def _absent(self, batch: pa.RecordBatch, there: pa.Array) -> Diagnostic:
        first = pc.index(there, False).as_py()
        (values,) = batch.select(list(self.on)).slice(first, 1).to_pylist()
        help_ = '`on_missing: "null"`, `drop` or `{dead_letter: SINK}` lets such rows pass'
        return Diagnostic("MS139", f"`{self.spec.name}`: {self._sentence(values)}", help=help_)

    def _sentence(self, values: Mapping[str, Any]) -> str:
        wanted = ", ".join(f"{key} = {values[name]!r}" for name, key in zip(self.on, self.spec.keys, strict=True))
        return f"`{self.spec.shown}` has no row with {wanted}"


def settle(spec: TableSpec, context: NodeContext) -> tuple[TableSpec, pa.Schema]:
    """What the table looks like, asked once in a run."""
    if "schema" not in context.memory:
        store = open_store(spec)
        try:
            context.memory["schema"] = store.settle()
        finally:
            store.close()
    return spec, context.memory["schema"]


def counter(spark: SparkSession, context: NodeContext) -> Accumulator[Counts]:
    """The node's accumulator of this run."""
    if "counter" not in context.memory:
        context.memory["counter"] = spark.sparkContext.accumulator({}, Latest())  # type: ignore[arg-type]  # named after its methods
    kept: Accumulator[Counts] = context.memory["counter"]
    return kept


def taken(memory: Mapping[str, Any]) -> dict[str, int]:
    """What was counted since the last time."""
    if "counter" not in memory:
        return {}
    counts: Counts = memory["counter"].value
    memory["counter"].value = {}
    return {"hits": sum(hits for hits, _ in counts.values()), "misses": sum(misses for _, misses in counts.values())}
