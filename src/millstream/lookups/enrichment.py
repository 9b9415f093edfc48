"""Runs a `lookup` in Python's workers: looks up batches in parallel, returns them in order, and counts hits and misses.

The counts use one Spark accumulator. A task that runs twice, or a frame that is read twice, must not count twice: so a task does not add to
a sum, but sets the numbers of its partition. The driver reads them at the end of an epoch.
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
from millstream.lookups.reader import reader_of
from millstream.lookups.table import TableSpec
from millstream.worker import marks
from millstream.worker.batches import REJECT, REJECT_TYPE
from millstream.worker.remote_errors import carry_errors

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

Counts = dict[int, tuple[int, int]]
"""partition → hits and misses"""


class Latest:
    """The last value of a partition replaces earlier ones. Spark finds it by its methods."""

    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 — Spark's name
        return {**value1, **value2}


@dataclass(frozen=True)
class LookupRunner:
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
                yield from self._apply_policy(batch)
        except Exception as error:
            error.add_note(marks.write(marks.NODE, self.spec.name))
            raise
        finally:
            self.counter.add({task.partitionId() if task else 0: (hits, misses)})

    def _in_order(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The batches in order, `concurrency` at a time. With one there is no thread."""
        if self.concurrency == 1:
            yield from (self._look_up(batch, 0) for batch in batches)
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
            return self._look_up(batch, lane)
        finally:
            lanes.put(lane)

    def _look_up(self, batch: pa.RecordBatch, lane: int) -> tuple[int, pa.RecordBatch]:
        """The number of rows with a match, and the batch with its new columns; the last column says whether there is a match."""
        with carry_errors():
            found = reader_of(self.spec, self.schema, lane).find(*(batch.column(name) for name in self.on))
            there = pc.is_valid(found.positions)
            hits = pc.sum(there).as_py() or 0
            if hits < batch.num_rows and self.missing == "fail":
                raise RunError(self._absent(batch, there))
        added = {name: pc.take(found.rows[column].combine_chunks(), found.positions) for name, column in self.select}
        arrays = [*batch.columns, *added.values(), there]
        return hits, pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *added, "_there"])

    def _apply_policy(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
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
        return f"`{self.spec.display_name}` has no row with {wanted}"
