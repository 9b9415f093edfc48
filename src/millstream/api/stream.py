"""`DataStream`: a stream of rows. Every operator returns a new stream and does not change the old one, so streams can be shared. Only
`with_event_time` declares something about the stream itself, and returns it.

The types enforce the rules: a stream has no `execute` (it has no sink), a flow has no operators (it has ended in sinks), and windows exist
only on keyed streams. A type checker reports such mistakes before anything runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pydantic import ValidationError

from millstream.api.call_site import caller
from millstream.api.environment import StreamEnvironment
from millstream.errors import Diagnostic, SpecError, nearest
from millstream.observe.report import Report
from millstream.plan.branches import DEFAULT
from millstream.plan.components import Component, NamesInputs, Sink, Source, Transform
from millstream.plan.error_policy import DeadLetter, OnError
from millstream.plan.event_time import EventTime
from millstream.plan.expressions import Expr, expr
from millstream.plan.nodes import SourceNode
from millstream.plan.option_mistakes import mistakes
from millstream.plan.run_options import RunOptions
from millstream.plan.schemas import propagate
from millstream.plan.settings import AvailableNow
from millstream.plan.topology import Topology
from millstream.plan.types import name_of
from millstream.plan.windows import SessionWindow, SlidingWindow, TumblingWindow
from millstream.registry import Kind, Registry
from millstream.sql.check.expressions import expression_fault

if TYPE_CHECKING:
    from millstream.api.keyed import KeyedStream

Value = Expr | str
"""An expression, or its text in Spark SQL."""

BatchFunction = Callable[[pa.RecordBatch], pa.RecordBatch]
FlatFunction = Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]]


class DataStream:
    """A stream of rows. Make one with `StreamEnvironment.from_source`."""

    def __init__(self, environment: StreamEnvironment, name: str) -> None:
        self.environment, self.name = environment, name

    def __repr__(self) -> str:
        """The stream, its path and its columns, as far as they are known without Spark."""
        topology = self.environment.topology()
        path = " → ".join(node.name for node in topology.up_to(self.name)) or f"{self.name} (removed)"
        schema = propagate(topology).get(self.name)
        columns = ", ".join(f"{field.name} {name_of(field.type)}" for field in schema) if schema is not None else "columns not known yet"
        return f"{type(self).__name__}({path}: {columns})"

    def filter(self, where: Value, *, name: str | None = None, on_error: OnError = "fail") -> DataStream:
        """Keep the rows for which the condition is true."""
        return self.then("filter", name, on_error, where=str(where))

    def select(self, *columns: Value, name: str | None = None, on_error: OnError = "fail", **named: Value) -> DataStream:
        """Only these columns: by name, as `expression.alias("x")`, or as `x=expression`."""
        return self.then("select", name, on_error, columns=_projection(columns, named))

    def with_columns(self, *, name: str | None = None, on_error: OnError = "fail", **columns: Value) -> DataStream:
        """Add columns, or replace those of the same name."""
        return self.then("with_columns", name, on_error, columns={key: str(value) for key, value in columns.items()})

    def drop(self, *columns: str, name: str | None = None) -> DataStream:
        """Remove columns."""
        return self.then("drop", name, "fail", columns=columns)

    def sql(self, query: str, *others: DataStream, name: str | None = None, on_error: OnError = "fail") -> DataStream:
        """A SQL query; it refers to this stream, and others, by the names of their nodes."""
        return self.then("sql", name, on_error, others, sql=query)

    def map_batches(
        self,
        function: BatchFunction,
        *,
        schema: pa.Schema | Mapping[str, str] | None = None,
        batch_size: int | None = None,
        deterministic: bool = True,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> DataStream:
        """A function from one Arrow batch to one Arrow batch. Without `schema` it is called once with no rows to find the columns.

        `batch_size` is the most rows per call. `deterministic=False` is for a function that may return other rows for the same input: its
        result is then computed once and kept until every sink has committed it.
        """
        return self.then("python", name, on_error, function=function, schema=schema, batch_size=batch_size, deterministic=deterministic)

    def transform(self, transform: Transform, *others: DataStream, name: str | None = None, on_error: OnError = "fail") -> DataStream:
        """The rows that a transform makes of these and of other streams: a plugin, or one of your own classes."""
        inputs = (self.name, *(other.name for other in others))
        return DataStream(self.environment, self.environment.add(transform, inputs, name, (), on_error))

    def flat_map(
        self,
        function: FlatFunction,
        *,
        schema: pa.Schema | Mapping[str, str] | None = None,
        batch_size: int | None = None,
        deterministic: bool = True,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> DataStream:
        """A function from one Arrow batch to any number of them. Options as for `map_batches`."""
        return self.then("python", name, on_error, function=function, schema=schema, batch_size=batch_size, deterministic=deterministic)

    def script(
        self,
        text: str,
        *,
        language: str = "typescript",
        schema: pa.Schema | Mapping[str, str] | None = None,
        mode: str = "row",
        engine: str = "quickjs",
        batch_size: int | None = None,
        timeout: str | None = None,
        memory: str | None = None,
        allow: Iterable[str] = (),
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> DataStream:
        """A function in TypeScript or JavaScript of each row, in a sandbox: `text` is the script. docs/scripts.md says what it may
        return.
        """
        options: dict[str, Any] = {"language": language, "schema": schema, "mode": mode, "engine": engine, "batch_size": batch_size}
        options |= {"timeout": timeout, "memory": memory, "allow": sorted(allow) or None}
        return self.then("script", name, on_error, script=text, **options)

    def union(self, *others: DataStream, name: str | None = None) -> DataStream:
        """The rows of this stream and of others, columns matched by name."""
        return self.then("union", name, "fail", others)

    def dedup(self, *key: str, within: str, name: str | None = None, on_error: OnError = "fail") -> DataStream:
        """The first row of each key by event time, without the others up to `within` after it."""
        return self.then("dedup", name, on_error, key=key, within=within)

    def output(self, side: str, *, name: str | None = None) -> DataStream:
        """The rows that a process function yields for one of its side outputs."""
        return self.then("output", name, "fail", side=side)

    def join(
        self,
        right: DataStream,
        *,
        on: Value | Iterable[str],
        within: Mapping[str, str] | None = None,
        kind: Literal["inner", "left", "right", "full"] = "inner",
        unbounded: bool = False,
        allowed_lateness: str | None = None,
        late: OnError | None = None,
        name: str | None = None,
    ) -> DataStream:
        """Join rows that match and are close in time: `within={"before": "0s", "after": "1h"}`, relative to this stream."""
        condition = str(on) if isinstance(on, str | Expr) else tuple(on)
        options: dict[str, Any] = {
            "within": within,
            "kind": kind,
            "unbounded": unbounded,
            "allowed_lateness": allowed_lateness,
            "late": late,
        }
        return self.then("join", name, "fail", left=self.name, right=right.name, on=condition, **options)

    def join_window(
        self,
        *others: DataStream,
        on: Iterable[str],
        window: TumblingWindow | SlidingWindow | SessionWindow,
        kind: Literal["inner", "left", "full"] = "inner",
        allowed_lateness: str | None = None,
        late: OnError | None = None,
        name: str | None = None,
    ) -> DataStream:
        """Join rows of several streams with the same key and window."""
        options: dict[str, Any] = {"window": window, "kind": kind, "allowed_lateness": allowed_lateness, "late": late}
        return self.then("join", name, "fail", others, on=tuple(on), **options)

    def join_table(
        self,
        table: Source,
        *,
        on: Value | Iterable[str],
        kind: Literal["inner", "left"] = "inner",
        refresh: str | None = None,
        name: str | None = None,
    ) -> DataStream:
        """Look up rows in a table that is read as a whole, and again every `refresh`."""
        condition = str(on) if isinstance(on, str | Expr) else tuple(on)
        options = {"type": table.type, **table.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
        return self.then("join", name, "fail", left=self.name, table=options, on=condition, kind=kind, refresh=refresh)

    def lookup(
        self,
        table: str,
        *,
        on: Mapping[str, str],
        select: Iterable[str] | Mapping[str, str],
        on_missing: Literal["null", "fail", "drop"] | DeadLetter = "null",
        name: str | None = None,
        **options: Any,
    ) -> DataStream:
        """Add columns of a database table by key: `on` is column → the table's column. Further options as in YAML."""
        chosen = dict(select) if isinstance(select, Mapping) else tuple(select)
        return self.then("lookup", name, "fail", table=table, on=dict(on), select=chosen, on_missing=on_missing, **options)

    def score(
        self,
        model: str | Path,
        *,
        outputs: Mapping[str, str] | Iterable[str],
        inputs: Mapping[str, str | Iterable[str]] | None = None,
        batch_size: int | None = None,
        threads: int = 1,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> DataStream:
        """Add what an ONNX model says of each row. `inputs`: input of the model → column, or several; `outputs`: new column → output."""
        named = dict(outputs) if isinstance(outputs, Mapping) else {column: column for column in outputs}
        given = {tensor: columns if isinstance(columns, str) else tuple(columns) for tensor, columns in (inputs or {}).items()}
        options: dict[str, Any] = {"model": str(model), "inputs": given, "outputs": named}
        return self.then("onnx", name, on_error, **options, batch_size=batch_size, threads=threads)

    def split(self, *, name: str | None = None, on_error: OnError = "fail", **conditions: Value) -> Split:
        """Route rows by content: each row goes to the first branch whose condition is true, or to the branch `default`."""
        route = self.then("route", name, on_error, routes={branch: str(condition) for branch, condition in conditions.items()})
        branches = [*conditions, *([] if DEFAULT in conditions else [DEFAULT])]
        streams = {branch: route.then("branch", f"{route.name}.{branch}", "fail", branch=branch) for branch in branches}
        return Split(route.name, streams)

    def tee(self, first: Callable[[DataStream], Flow], *more: Callable[[DataStream], Flow]) -> Flow:
        """The same rows on several branches; each branch ends in a sink."""
        return [branch(self) for branch in (first, *more)][-1]

    def key_by(self, *columns: str) -> KeyedStream:
        """Group rows by equal values in these columns."""
        from millstream.api.keyed import KeyedStream

        return KeyedStream(self, columns)

    def to(self, sink: Sink, name: str | None = None, *, primary_key: str | Iterable[str] = (), on_error: OnError = "fail") -> Flow:
        """End in a sink. `on_error` is the policy for rows that the target refuses: `"fail"`, `"drop"`, or `env.dead_letters(sink)`."""
        self.environment.add(sink, (self.name,), name, primary_key, on_error)
        return Flow(self.environment)

    def collect(self) -> pa.Table:
        """Run the nodes up to here and return the rows. Every input must be bounded, or the trigger `available_now`."""
        self._require_end()
        sink = _component("sink", "memory")
        name = self.environment.add(sink, (self.name,), f"{self.name}.collected", (), "fail")
        try:
            topology = self.environment.topology()
            chosen = [node.name for node in topology.up_to(name)]
            chosen += [node.name for table in _tables_of(topology, chosen) for node in topology.up_to(table)]
            chosen += [sink for node in topology.up_to(name) for sink in node.dead_letter_sinks]
            with tempfile.TemporaryDirectory(prefix="millstream-") as folder:
                report = self.environment.run_part(chosen, self.environment.settings.model_copy(update={"checkpoint": folder}))
        finally:
            self.environment.forget(name)
        if report.state == "stopped":
            raise KeyboardInterrupt  # a part of the rows would look like a result
        table: pa.Table = sink.table()  # type: ignore[attr-defined]  # the memory sink's
        return table

    def _require_end(self) -> None:
        """A stream that never ends would run for ever and return nothing."""
        if isinstance(self.environment.settings.trigger, AvailableNow):
            return
        above = self.environment.topology().up_to(self.name)
        unbounded = [node for node in above if isinstance(node, SourceNode) and not node.component.bounded]
        if unbounded:
            message = f"`collect()` needs an input that ends, and source `{unbounded[0].name}` has no end"
            help_ = "make it bounded (`mode={'type': 'bounded'}`, `rows=…` of a generator), or send the rows to a sink: `.to(…).execute()`"
            raise SpecError(Diagnostic("MS175", message, unbounded[0].span, help=help_, node=unbounded[0].name))

    def with_event_time(
        self,
        column: str,
        *,
        watermark: str = "0s",
        unit: Literal["s", "ms", "us"] | None = None,
        format: str | None = None,
        idle_after: str | None = None,
        max_ahead: str = "1d",
    ) -> DataStream:
        """Declare the column with the event time of these rows, and how long to wait for late ones."""
        options = {"watermark": watermark, "unit": unit, "format": format, "idle_after": idle_after, "max_ahead": max_ahead}
        given = {"column": column, **{name: value for name, value in options.items() if value is not None}}
        try:
            event_time = EventTime.model_validate(given)
        except ValidationError as error:
            raise SpecError(mistakes(error, EventTime, "`with_event_time`")) from None
        self.environment.declare(self.name, event_time)
        return self

    def then(self, type_name: str, name: str | None, on_error: OnError, others: tuple[DataStream, ...] = (), **options: Any) -> DataStream:
        """A transform by its type, as YAML names it; options that are None are left out."""
        component = _component("transform", type_name, **{key: value for key, value in options.items() if value is not None})
        inputs = (self.name, *(other.name for other in others))
        return DataStream(self.environment, self.environment.add(component, inputs, name, (), on_error))


class UnknownBranchError(SpecError, KeyError):
    """A branch that a route does not have; also a KeyError, as a mapping raises it."""


class Split(Mapping[str, DataStream]):
    """Branches by name."""

    def __init__(self, route: str, branches: dict[str, DataStream]) -> None:
        self._route, self._branches = route, branches

    def __getitem__(self, name: str) -> DataStream:
        if name not in self._branches:
            message = f"route `{self._route}` has no branch `{name}`"
            raise UnknownBranchError(Diagnostic("MS012", message, caller(), help=nearest(str(name), self._branches), node=self._route))
        return self._branches[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._branches)

    def __len__(self) -> int:
        return len(self._branches)

    def __repr__(self) -> str:
        return f"Split({', '.join(self._branches)})"


class Flow:
    """Streams that have ended in sinks: ready to run."""

    def __init__(self, environment: StreamEnvironment) -> None:
        self.environment = environment

    def __repr__(self) -> str:
        return f"Flow({self.topology()!r})"

    def execute(self, options: RunOptions | None = None) -> Report:
        """Run every flow of the environment; the report says what happened."""
        return self.environment.execute(options)

    def topology(self) -> Topology:
        """The plan that would run."""
        return self.environment.topology()


def _projection(columns: tuple[Value, ...], named: Mapping[str, Value]) -> dict[str, str]:
    found: dict[str, str] = {}
    for column in columns:
        tree = column.tree if isinstance(column, Expr) else _parse(column).tree
        found[tree.alias_or_name or str(column)] = str(Expr(tree.unalias()))
    return found | {name: str(value) for name, value in named.items()}


def _parse(text: str) -> Expr:
    if fault := expression_fault(text):
        raise SpecError(Diagnostic("MS027", f"`{text}` is not an expression: {fault.reason}", caller(), help=fault.help))
    return expr(text)


def _component(kind: Kind, type_name: str, /, **options: Any) -> Component:
    model = Registry.installed().find(kind, type_name)
    assert model is not None
    component: Component = model(**options)
    return component


def _tables_of(topology: Topology, names: Iterable[str]) -> set[str]:
    """The dynamic tables in which nodes look up rows."""
    components = [topology.node(name).component for name in names]
    return {table for component in components if isinstance(component, NamesInputs) for table in component.lookup_names}
