"""Functions of SQL, preprocessors and side outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from millstream.plan import types
from millstream.plan.components.preprocessor import PipelineText, Preprocessor
from millstream.plan.components.side_output import SideOutput
from millstream.plan.components.udf import Udf
from millstream.testing.conformance.promises import Check
from millstream.testing.conformance.surroundings import NODE, batch_of, every_type, on_worker, sent
from millstream.worker.plugin_tasks import Task
from millstream.worker.udf import FunctionRunner

_TEXT = "name: größe_数据\nsources: {}\nsinks: {}\n"


def udf_checks(function: Udf, schema: pa.Schema | None) -> Iterator[Check]:
    arguments = schema if schema is not None else pa.schema([("value", pa.int64())])

    def call(batch: pa.RecordBatch) -> pa.Array:
        runner = FunctionRunner(function.type, sent(function.for_workers(), type(function)), _kind(function), function.aggregate, ".")
        return runner.run((_groups(batch),) if function.aggregate else tuple(batch.columns))

    def result() -> str:
        call(batch_of(arguments))
        return ""

    def nulls() -> str:
        call(pa.RecordBatch.from_arrays([pa.nulls(3, field.type) for field in arguments], schema=arguments))
        return ""

    def empty() -> str:
        call(batch_of(arguments).slice(0, 0))
        return ""

    def replay() -> str:
        if not function.deterministic or call(batch_of(arguments)).equals(call(batch_of(arguments))):
            return ""
        return "the same values gave another result; if that is meant, set `deterministic` to false"

    yield Check("type of the result", result)
    yield Check("nulls", nulls)
    yield Check("empty batch", empty)
    yield Check("replay of an epoch", replay)


def _kind(function: Udf) -> pa.DataType:
    return types.parse(function.returns)


def _groups(batch: pa.RecordBatch) -> pa.Array:
    """Arguments of an aggregate as the engine collects them: one list per group."""
    values = batch.column(0) if batch.num_columns == 1 else batch.rename_columns([f"_millstream_{n + 1}" for n in range(batch.num_columns)])
    flat = values if isinstance(values, pa.Array) else values.to_struct_array()
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)


def preprocessor_checks(preprocessor: Preprocessor) -> Iterator[Check]:
    around = PipelineText(Path("größe.yaml"), {})

    def text() -> str:
        found = preprocessor.rewrite(_TEXT, around)
        return "" if isinstance(found, str) else f"`rewrite` returned a {type(found).__name__}, not text"

    def replay() -> str:
        same = preprocessor.rewrite(_TEXT, around) == preprocessor.rewrite(_TEXT, around)
        return "" if same else "the same text became another one: every command that reads the pipeline must see the same"

    def empty() -> str:
        return "" if isinstance(preprocessor.rewrite("", around), str) else "an empty text did not become text"

    yield Check("text and alphabets", text)
    yield Check("replay", replay)
    yield Check("empty text", empty)


def side_output_checks(side_output: SideOutput, schema: pa.Schema | None) -> Iterator[Check]:
    columns = schema if schema is not None else every_type()

    def observes() -> str:
        on_worker(side_output, "observe").observe(batch_of(columns), Task(NODE, columns))
        return ""

    def empty() -> str:
        on_worker(side_output, "observe").observe(batch_of(columns).slice(0, 0), Task(NODE, columns))
        return ""

    yield Check("columns and types", observes)
    yield Check("empty batch", empty)
