"""A Python function over whole Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.plan import types
from millstream.plan.changelog import carried
from millstream.plan.components import REJECT, NodeContext, Problem, Transform
from millstream.plan.functions import FunctionRef
from millstream.plan.options import SchemaMap
from millstream.transforms.batches import REJECT_TYPE, BatchRunner, WrongResultError, returned
from millstream.transforms.checks import only
from millstream.transforms.shipping import by_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Python(Transform):
    """Calls a function of yours with `pyarrow.RecordBatch`es and takes what it returns: one batch or several, with as many rows as
    it likes. The function runs in Spark's Python workers, many batches at a time; modules beside the pipeline travel with it.

    Without `schema` the function is called once with no rows to find out what it returns. On a changelog `_op` and `_seq` stay with their
    rows when the function does not return them, as long as it returns a row for each row.
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
    dear: ClassVar[bool] = True

    function: FunctionRef
    """`module:function` or `path.py:function`, relative to the pipeline: RecordBatch → RecordBatch, or several."""
    columns: SchemaMap | None = Field(default=None, alias="schema")
    """Column → type of what comes out. Default: found by calling the function with no rows."""
    batch_size: int | None = Field(default=None, ge=1)
    """The most rows that it is called with. Default: as many as Spark sends at once."""
    repeatable: bool = Field(default=True, alias="deterministic")
    """Whether the same rows always give the same result. Say `false` for a function that reads a clock, uses random numbers or asks
    somebody else."""

    @property
    def deterministic(self) -> bool:
        return self.repeatable

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        if not self.columns:
            return None
        schema, given = types.schema(self.columns), only(inputs)
        kept = [given.field(name) for name in carried(given.names) if name not in schema.names] if given is not None else []
        return pa.schema([*schema, *kept])

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        problem = self.function.problem(directory)
        return [Problem("MS016", problem, "function")] if problem else []

    def discover(self, inputs: Mapping[str, pa.Schema], directory: Path) -> pa.Schema:
        schema = only(inputs)
        if self.columns or schema is None:
            return types.schema(self.columns or {})
        return _found(self._load(directory), schema, self.function.reference)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

        ((name, frame),) = frames.items()
        function = self._load(context.directory)
        schema = types.schema(self.columns) if self.columns else self.discover({name: to_arrow_schema(frame.schema)}, context.directory)
        kept = tuple(name for name in carried(frame.columns) if name not in schema.names)
        own = to_arrow_schema(from_arrow_schema(schema, prefer_timestamp_ntz=True))
        schema = pa.schema([*schema, *(to_arrow_schema(frame.schema).field(name) for name in kept)])
        runner = BatchRunner(
            function, context.name, own, self.batch_size, context.isolate, str(context.directory.resolve()), kept, context.hidden
        )
        columns = schema.append(pa.field(REJECT, REJECT_TYPE)) if context.isolate else schema
        produced = from_arrow_schema(columns, prefer_timestamp_ntz=True)
        with by_value(context.directory, function):
            return frame.mapInArrow(runner.run, produced)

    def _load(self, directory: Path) -> Callable[..., Any]:
        try:
            return self.function.load(directory)
        except ValueError as error:
            raise RunError(Diagnostic("MS016", str(error))) from error


def _found(function: Callable[..., Any], schema: pa.Schema, name: str) -> pa.Schema:
    """What comes out when nothing goes in."""
    help_ = "declare what comes out: `schema: {column: type}`"
    try:
        results = list(returned(function(pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema))))
        if not results:
            raise WrongResultError("it returned no batch")
        return pa.schema([pa.field(field.name, types.parse(types.name_of(field.type))) for field in results[0].schema])
    except Exception as error:
        message = f"the columns of `{name}` could not be found by calling it with no rows: {type(error).__name__}: {error}"
        raise RunError(Diagnostic("MS064", message, help=help_)) from error
