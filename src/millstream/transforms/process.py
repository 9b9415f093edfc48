"""Runs a class of the user's on each key's rows, with state and timers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field

from millstream.errors import Diagnostic, RunError
from millstream.jvm.pickling import by_value
from millstream.keyed.keys import flat_key_problems
from millstream.keyed.operator import Keyed, spark_types
from millstream.keyed.state_reader import readable_state
from millstream.plan import types
from millstream.plan.components import NodeContext, Problem, Transform
from millstream.plan.functions import FunctionRef
from millstream.plan.options import Columns, Duration
from millstream.worker.key_runner import KeyedRunner
from millstream.worker.output_batches import SIDE, OutputShape
from millstream.worker.processing import BucketFunction, ProcessFunction
from millstream.worker.state_layout import StateLayout
from millstream.worker.states import MapState, State
from millstream.worker.table_runner import TableRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Process(Transform):
    """Calls a class of yours with the rows of one key at a time; it keeps declared states and sets timers. The class derives from
    `millstream.ProcessFunction` and declares `output`, `outputs` and `state`; one that derives from `millstream.BucketFunction` gets a
    whole bucket of keys as Arrow tables instead.

    Rows of a key arrive in the order of event time within an epoch. Late rows reach the function too: compare with `timers.watermark`.
    Timers up to the watermark fire before the rows of an epoch, and at the end of a bounded input all of them fire (`timers.at_end`),
    except those of the clock. A time to live uses the clock of the epochs.
    Rejects: a row with a null key, and with `on_error` all rows of a key in an epoch in which the function raises; the key's state does not
    change.
    """

    type: ClassVar[str] = "process"
    summary: ClassVar[str] = "Call a class with each key's rows, with state and timers."
    example: ClassVar[str] = """
        fraud:
          type: process
          from: clicks
          key_by: [user]
          function: fraud:Detector
    """
    expensive: ClassVar[bool] = True
    side_column: ClassVar[str] = SIDE

    key_by: Annotated[Columns, Field(min_length=1)]
    """Rows with equal values in these columns belong together. Not null, and neither floats nor nested values."""
    function: FunctionRef
    """`module:Class` or `path.py:Class`, relative to the pipeline."""
    buckets: int = Field(default=32, ge=1, le=10_000)
    """The number of buckets for keys; the state of a bucket is read and written as a whole. Choose several times the number of state
    partitions, and so many that a bucket's state stays in the low megabytes. Fixed by the first start."""
    timeout: Duration | None = None
    """How long a bucket may take in one epoch before the pipeline stops. Default: no limit."""
    repeatable: bool = Field(default=True, alias="deterministic")
    """Whether the same rows always give the same result."""

    adjustable: ClassVar[frozenset[str]] = frozenset({"timeout"})

    @property
    def deterministic(self) -> bool:
        return self.repeatable

    @property
    def stateful(self) -> bool:
        return True

    @property
    def needs_event_time(self) -> bool:
        return False

    @property
    def keeps_watermark(self) -> bool:
        """Timers must fire between the rows of a bounded input as they would in a continuous one."""
        return True

    def waits_for_clock(self, directory: Path) -> bool:
        return _waits_for_clock(self._load(directory))

    def output(self, inputs: Mapping[str, pa.Schema | None]) -> pa.Schema | None:
        declared = self.function.attribute("output")
        return types.schema(declared) if declared else None

    def problems(self, inputs: Mapping[str, pa.Schema | None], directory: Path) -> list[Problem]:
        found, problem = flat_key_problems(self.key_by, "key_by", inputs), self.function.problem(directory)
        return [*found, Problem("MS016", problem, "function")] if problem else found

    def read_state(self, spark: SparkSession, url: str, node: str) -> Iterator[dict[str, Any]]:
        return readable_state(spark, url, node)

    def apply(self, frames: Mapping[str, DataFrame], context: NodeContext) -> DataFrame:
        (frame,) = frames.values()
        function = self._load(context.directory)
        split_null_keys = Keyed(frame, self.key_by, context, self.buckets, self.timeout)
        with by_value(function=type(function), directory=context.directory):
            runner = self.runner(function, split_null_keys.schema, split_null_keys.order, context.isolate, context.hidden)
            return split_null_keys.process(runner, _waits_for_clock(function), runner.shape.schema)

    def runner(
        self, function: Any, schema: pa.Schema, order: tuple[str, ...], isolate: bool, hidden: tuple[str, ...] = ()
    ) -> KeyedRunner | TableRunner:
        """The runner of the function in the workers, for rows of this schema."""
        shape = _shape(function, isolate, hidden)
        if isinstance(function, BucketFunction):
            return TableRunner(function, self.key_by, schema, spark_types(types.schema(function.state)), shape, order)
        keys = pa.schema([schema.field(name) for name in self.key_by])
        return KeyedRunner(function, _layout(function, keys), shape, order, _waits_for_clock(function))

    def _load(self, directory: Path) -> Any:
        """An instance of the class, with its declarations checked."""
        try:
            made = self.function.load(directory)
            if not isinstance(made, type) or not issubclass(made, ProcessFunction | BucketFunction):
                raise ValueError(f"`{self.function.reference}` is neither a `ProcessFunction` nor a `BucketFunction`")
            function = made()
            for columns in (function.output, *function.outputs.values()):
                types.schema(columns)
            if isinstance(function, BucketFunction):
                types.schema(function.state)
            else:
                _layout(function, pa.schema([]))
            if not function.output:
                raise ValueError(f"`{self.function.reference}` declares no `output` (its result columns)")
        except (ValueError, TypeError) as error:
            raise RunError(Diagnostic("MS016", str(error))) from error
        return function


def _shape(function: Any, isolate: bool, hidden: tuple[str, ...] = ()) -> OutputShape:
    sides = {name: spark_types(types.schema(columns)) for name, columns in function.outputs.items()}
    return OutputShape(spark_types(types.schema(function.output)), sides, isolate, hidden)


def _layout(function: ProcessFunction, keys: pa.Schema) -> StateLayout:
    for name in function.state:
        if not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"`{name}` cannot be the name of a state: letters, digits and `_`, and it starts with a letter")
    columns = [pa.field(name, _column_type(state)) for name, state in function.state.items()]
    return StateLayout(keys, pa.schema(columns), {name: (state.kind, state.ttl_ms) for name, state in function.state.items()})


def _waits_for_clock(function: Any) -> bool:
    """Whether it waits for the clock."""
    return isinstance(function, ProcessFunction) and type(function).on_clock is not ProcessFunction.on_clock


def _column_type(state: State) -> pa.DataType:
    """The column type of a state: with a time to live, each value has its write time."""
    value = types.parse(state.type)
    entry = pa.struct([("v", value), ("at", pa.int64())]) if state.ttl else value
    if isinstance(state, MapState):
        return pa.map_(types.parse(state.key), entry)
    return pa.list_(entry) if state.kind == "list" else entry
