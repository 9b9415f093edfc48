"""Base class for transforms that turn Arrow batches into Arrow batches on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from millstream.jvm.plugin_frames import as_spark_has_it, map_batches, schema_of
from millstream.plan.changelog import kept_columns
from millstream.plan.components.calls import driver_call, place_of
from millstream.plan.components.component import REJECT, Problem
from millstream.plan.components.context import NodeContext
from millstream.plan.components.shipping import for_workers
from millstream.plan.components.transform import Transform, TransformRun
from millstream.worker.batches import REJECT_TYPE, TRACED, BatchRunner
from millstream.worker.plugin_runners import TransformCall
from millstream.worker.plugin_tasks import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ArrowTransform(Transform):
    """A transform whose rows are Arrow batches: it implements `process`, and `output_schema` if the columns change. Override
    `deterministic` if the same rows may give other results: the engine then computes an epoch's rows once.
    """

    expensive: ClassVar[bool] = True

    def process(self, batch: pa.RecordBatch, task: Task) -> pa.RecordBatch | pa.Table | Iterable[pa.RecordBatch]:
        """The rows that a batch becomes: any number. Called on workers, for batches with at least one row."""
        raise NotImplementedError

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the result, for that of the input. Default: the same. Called on the driver, without Spark."""
        return schema

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        (schema,) = inputs.values() or (None,)
        if schema is None:
            return None
        try:
            found = _with_nulls(self.output_schema(schema))
        except Exception:  # noqa: BLE001 — whatever the plugin raises, `problems` reports it
            return None
        return pa.schema([*found, *(schema.field(name) for name in kept_columns(schema.names) if name not in found.names)])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        (schema,) = inputs.values() or (None,)
        try:
            if schema is not None:
                self.output_schema(schema)
        except Exception as error:  # noqa: BLE001 — whatever the plugin raises
            place = place_of(error).splitlines()[0]
            return [Problem("MS206", f"`output_schema` raised {type(error).__name__}: {error}", "type", f"see {place}")]
        return []

    def open(self, context: NodeContext) -> TransformRun:
        return ArrowTransformRun(self, context)


class ArrowTransformRun(TransformRun):
    """Sends the transform to the workers."""

    def __init__(self, transform: ArrowTransform, context: NodeContext) -> None:
        super().__init__(transform, context)
        self.arrow_transform = transform

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        given = schema_of(frame)
        with driver_call(context, "`output_schema`"):
            result = _with_nulls(self.arrow_transform.output_schema(pa.schema([field for field in given if field.name != TRACED])))
        kept = tuple(name for name in kept_columns(given.names) if name not in result.names)
        own = as_spark_has_it(result)
        task = Task(context.name, given, context.metrics)
        call = TransformCall(for_workers(self.arrow_transform, "process").process, task)
        runner = BatchRunner(call, context.name, own, None, context.isolate, str(context.directory.resolve()), kept, context.hidden)
        columns = pa.schema([*result, *(given.field(name).with_nullable(True) for name in kept)])
        if context.isolate:
            columns = columns.append(pa.field(REJECT, REJECT_TYPE))
        return map_batches(frame, runner.run, columns, type(self.arrow_transform), context.directory)


def _with_nulls(schema: pa.Schema) -> pa.Schema:
    """The columns of an input may exclude nulls; a transform need not keep to that, and Spark would trust it."""
    return pa.schema([field.with_nullable(True) for field in schema])
