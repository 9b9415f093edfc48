"""Runs a Python function over whole Arrow batches."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.plan import types
from millstream.plan.changelog import kept_columns
from millstream.plan.components import REJECT, NodeContext, Problem, Transform
from millstream.plan.functions import FunctionRef
from millstream.plan.options import SchemaMap
from millstream.sql.expressions import only_schema
from millstream.worker.batches import REJECT_TYPE, BatchRunner, WrongResultError, iter_batches
from millstream.worker.mistakes import is_mistake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Python(Transform):
    """Calls a function of yours with `pyarrow.RecordBatch`es and uses its result: one batch or several, with any number of rows. The
    function runs in Spark's Python workers, in parallel; modules next to the pipeline are sent with it.

    Without `schema` the function is called once with no rows to find its columns. On a changelog `_op` and `_seq` stay with their rows when
    the function does not return them, as long as it returns a row for each row.
    """

    type: ClassVar[str] = "python"
    shaped_by: ClassVar[frozenset[str]] = frozenset({"function", "schema", "columns"})
    summary: ClassVar[str] = "Call a Python function with Arrow batches."
    example: ClassVar[str] = """
        scored:
          type: python
          from: orders
          function: scoring:score
          schema: {id: int64, score: float64}
    """
    expensive: ClassVar[bool] = True

    function: FunctionRef
    """`module:function` or `path.py:function`, relative to the pipeline: RecordBatch → RecordBatch, or several."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type of the result. Default: found by calling the function with no rows."""
    batch_size: int | None = Field(default=None, ge=1)
    """The most rows per call. Default: as many as Spark sends at once."""
    repeatable: bool = Field(default=True, alias="deterministic")
    """Whether the same rows always give the same result. Set `false` for a function that reads a clock, uses random numbers or calls
    another system."""

    @property
    def deterministic(self) -> bool:
        return self.repeatable

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        if not self.columns:
            return None
        schema, given = types.schema(self.columns), only_schema(inputs)
        kept = [given.field(name) for name in kept_columns(given.names) if name not in schema.names] if given is not None else []
        return pa.schema([*schema, *kept])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        problem = self.function.problem(directory)
        return [Problem("MS016", problem, "function")] if problem else []

    def discover(self, inputs: Mapping[str, pa.Schema], directory: Path) -> pa.Schema:
        schema = only_schema(inputs)
        if self.columns or schema is None:
            return types.schema(self.columns or {})
        return _discover(self._load(directory), schema, self.function.reference)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        ((name, frame),) = frames.items()
        function = self._load(context.directory)
        schema = types.schema(self.columns) if self.columns else self.discover({name: to_arrow_schema(frame.schema)}, context.directory)
        kept = tuple(name for name in kept_columns(frame.columns) if name not in schema.names)
        own = to_arrow_schema(from_arrow_schema(schema, prefer_timestamp_ntz=True))
        schema = pa.schema([*schema, *(to_arrow_schema(frame.schema).field(name).with_nullable(True) for name in kept)])
        runner = BatchRunner(
            function, context.name, own, self.batch_size, context.isolate, str(context.directory.resolve()), kept, context.hidden
        )
        columns = schema.append(pa.field(REJECT, REJECT_TYPE)) if context.isolate else schema
        produced = from_arrow_schema(columns, prefer_timestamp_ntz=True)
        with by_value(function=function, directory=context.directory):
            return frame.mapInArrow(runner.run, produced)

    def _load(self, directory: Path) -> Callable[..., Any]:
        try:
            return self.function.load(directory)
        except ValueError as error:
            raise RunError(Diagnostic("MS016", str(error))) from error


def _discover(function: Callable[..., Any], schema: pa.Schema, name: str) -> pa.Schema:
    """The schema of the result for an empty input."""
    try:
        results = list(iter_batches(function(pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema))))
        if not results:
            raise WrongResultError("it returned no batch")
        return pa.schema([pa.field(field.name, types.parse(types.name_of(field.type))) for field in results[0].schema])
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip()
        help_ = _advice(error, reason, name)
        message = f"`{name}` has no `schema`, so it was called once with no rows to find its columns, and that failed: {reason}"
        raise RunError(Diagnostic("MS064", message, help=help_)) from error


def _advice(error: Exception, reason: str, name: str) -> str:
    """A function that would fail with any rows must be corrected; another one may fail because there are none."""
    if isinstance(error, WrongResultError) and str(error).startswith("expected"):
        return f"let `{name}` return a RecordBatch, or several"
    if is_mistake(reason):
        frames = traceback.extract_tb(error.__traceback__)[1:]  # without the call here
        return "correct the function" + (f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else f" `{name}`")
    return "declare its columns, as in `schema: {id: int64, score: float64}` (in Python `schema={…}`), or let it accept no rows"
