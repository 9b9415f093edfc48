"""Transforms: the result has the declared columns for every type, does not depend on the size of batches, and is the same again."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millstream.plan.components.arrow_transform import ArrowTransform
from millstream.testing.conformance.promises import Check, difference
from millstream.testing.conformance.surroundings import NODE, batch_of, every_type, on_worker
from millstream.worker.batches import fit_batch, iter_batches
from millstream.worker.plugin_tasks import Task


def checks(transform: ArrowTransform, schema: pa.Schema | None) -> Iterator[Check]:
    needed = schema if schema is not None else pa.schema([])
    whole = pa.schema([*needed, *(field for field in every_type() if field.name not in needed.names)])
    batch = pa.concat_batches([batch_of(whole), batch_of(whole, 3)])

    def process(given: pa.RecordBatch) -> pa.Table:
        called = on_worker(transform, "process")
        declared = transform.output_schema(given.schema)
        results = [fit_batch(each, declared) for each in iter_batches(called.process(given, Task(NODE, given.schema)))]
        return pa.Table.from_batches(results, declared)

    def columns() -> str:
        process(batch)
        return ""

    def empty() -> str:
        rows = process(batch.slice(0, 0)).num_rows
        return f"no rows became {rows}" if rows and transform.deterministic else ""

    def replay() -> str:
        if not transform.deterministic:
            return ""
        wrong = difference(process(batch).to_pylist(), process(batch).to_pylist())
        return f"the same rows gave another result: {wrong}; if that is meant, set `deterministic`" if wrong else ""

    def boundaries() -> str:
        if not transform.deterministic:
            return ""
        parts = [row for start in range(batch.num_rows) for row in process(batch.slice(start, 1)).to_pylist()]
        wrong = difference(process(batch).to_pylist(), parts)
        return f"the result depends on the size of batches, which Spark chooses: {wrong}" if wrong else ""

    yield Check("columns and types", columns)
    yield Check("empty batch", empty)
    yield Check("replay of an epoch", replay)
    yield Check("size of batches", boundaries)
