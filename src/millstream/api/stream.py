"""`DataStream`: rows on their way. Every operator gives a new stream and leaves the old one as it was, so streams can be shared.

The types carry the rules: a stream has no `execute` (nothing would come out), a flow has no operators (its rows have arrived), and
windows are to be had on keyed streams only. A type checker sees such mistakes before anything runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from millstream.api.environment import StreamEnvironment
from millstream.observe.report import Report
from millstream.plan.components import Component, Sink, Source, Transform
from millstream.plan.expressions import Expr, sql
from millstream.plan.nodes import DeadLetter, OnError
from millstream.plan.running import RunOptions
from millstream.plan.time import EventTime
from millstream.plan.topology import Topology
from millstream.plan.windows import SessionWindow, SlidingWindow, TumblingWindow
from millstream.registry import Kind, Registry

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
        """The stream and the way to it."""
        path = " → ".join(node.name for node in self.environment.topology().upstream(self.name))
        return f"{type(self).__name__}({path})"

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
        """Leave columns out."""
        return self.then("drop", name, "fail", columns=columns)

    def sql(self, query: str, *others: DataStream, name: str | None = None, on_error: OnError = "fail") -> DataStream:
        """A SQL query; it names this stream, and others, by the names of their nodes."""
        return self.then("sql", name, on_error, others, sql=query)

    def map_batches(
        self,
        function: BatchFunction,
        *,
        schema: pa.Schema | Mapping[str, str] | None = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> DataStream:
        """A function from one Arrow batch to one Arrow batch. Without `schema` it is run once on no rows to find out."""
        return self.then("python", name, on_error, function=function, schema=schema)

    def flat_map(
        self,
        function: FlatFunction,
        *,
        schema: pa.Schema | Mapping[str, str] | None = None,
        name: str | None = None,
        on_error: OnError = "fail",
    ) -> DataStream:
        """A function from one Arrow batch to any number of them."""
        return self.then("python", name, on_error, function=function, schema=schema)

    def union(self, *others: DataStream, name: str | None = None) -> DataStream:
        """The rows of this stream and of others, columns matched by name."""
        return self.then("union", name, "fail", others)

    def dedup(self, *key: str, within: str, name: str | None = None, on_error: OnError = "fail") -> DataStream:
        """The first row of each key by event time, and none of the others up to `within` after it."""
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
        """Bring rows together that match and lie close in time: `within={"before": "0s", "after": "1h"}`, as seen from this stream."""
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
        """Bring rows of several streams together that have the same key and fall into the same window."""
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
        """Look rows up in a table that is read as a whole, and again every `refresh`."""
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
        """Add columns of a database's table by key: `on` is column → the table's column. Further options as in YAML."""
        chosen = dict(select) if isinstance(select, Mapping) else tuple(select)
        return self.then("lookup", name, "fail", table=table, on=dict(on), select=chosen, on_missing=on_missing, **options)

    def split(self, *, default: str = "rest", **conditions: Value) -> Split:
        """Route rows by content: each row goes to the first branch whose condition is true, or to the default branch."""
        branches: dict[str, DataStream] = {}
        taken: list[str] = []
        for branch, condition in conditions.items():
            branches[branch] = self.filter(" AND ".join([*taken, f"({condition})"]), name=f"{self.name}.{branch}")
            taken.append(f"NOT coalesce(({condition}), false)")
        branches[default] = self.filter(" AND ".join(taken), name=f"{self.name}.{default}") if taken else self
        return Split(branches)

    def tee(self, *branches: Callable[[DataStream], Flow]) -> Flow:
        """The same rows down several ways; each branch ends in a sink."""
        return [branch(self) for branch in branches][-1]

    def key_by(self, *columns: str) -> KeyedStream:
        """Rows with equal values in these columns belong together."""
        from millstream.api.keyed import KeyedStream

        return KeyedStream(self, columns)

    def to(self, sink: Sink, name: str | None = None, *, primary_key: str | Iterable[str] = ()) -> Flow:
        """End in a sink."""
        self.environment.add(sink, (self.name,), name, primary_key, "fail")
        return Flow(self.environment)

    def collect(self) -> pa.Table:
        """Run what leads here and bring the rows back. For finite streams."""
        sink = _component("sink", "memory")
        name = self.environment.add(sink, (self.name,), f"{self.name}.collected", (), "fail")
        topology = self.environment.topology()
        chosen = [node.name for node in topology.upstream(name)]
        chosen += [node.name for table in _tables_of(topology, chosen) for node in topology.upstream(table)]
        letters = [letter for node in topology.upstream(name) for letter in node.letters]
        with tempfile.TemporaryDirectory(prefix="millstream-") as folder:
            settings = self.environment.settings.model_copy(update={"checkpoint": folder})
            try:
                report = self.environment.run_part([*chosen, *letters], settings)
            finally:
                self.environment.forget(name)
        if report.state == "stopped":
            raise KeyboardInterrupt  # half of the rows would look like a result
        table: pa.Table = sink.table()  # type: ignore[attr-defined]  # the memory sink's
        return table

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
        """Say which column holds the time of these rows, and how long to wait for late ones."""
        options = {"watermark": watermark, "unit": unit, "format": format, "idle_after": idle_after, "max_ahead": max_ahead}
        event_time = EventTime.model_validate({"column": column, **{name: value for name, value in options.items() if value is not None}})
        self.environment.declare(self.name, event_time)
        return self

    def then(self, type_name: str, name: str | None, on_error: OnError, others: tuple[DataStream, ...] = (), **options: Any) -> DataStream:
        """A transform by its type, as YAML would name it; options that are None are left out."""
        component = _component("transform", type_name, **{key: value for key, value in options.items() if value is not None})
        inputs = (self.name, *(other.name for other in others))
        return DataStream(self.environment, self.environment.add(component, inputs, name, (), on_error))


class Split(Mapping[str, DataStream]):
    """Branches by name."""

    def __init__(self, branches: dict[str, DataStream]) -> None:
        self._branches = branches

    def __getitem__(self, name: str) -> DataStream:
        return self._branches[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._branches)

    def __len__(self) -> int:
        return len(self._branches)


class Flow:
    """Streams that have ended in sinks: ready to run."""

    def __init__(self, environment: StreamEnvironment) -> None:
        self.environment = environment

    def execute(self, options: RunOptions | None = None) -> Report:
        """Run every flow of the environment; the report says what happened."""
        return self.environment.execute(options)

    def topology(self) -> Topology:
        """The plan that would run."""
        return self.environment.topology()


def _projection(columns: tuple[Value, ...], named: Mapping[str, Value]) -> dict[str, str]:
    found: dict[str, str] = {}
    for column in columns:
        tree = column.tree if isinstance(column, Expr) else sql(column).tree
        found[tree.alias_or_name or str(column)] = str(Expr(tree.unalias()))
    return found | {name: str(value) for name, value in named.items()}


def _component(kind: Kind, type_name: str, /, **options: Any) -> Component:
    model = Registry.installed().find(kind, type_name)
    assert model is not None
    component: Component = model(**options)
    return component


def _tables_of(topology: Topology, names: Iterable[str]) -> set[str]:
    """The dynamic tables that nodes look rows up in."""
    components = [topology.node(name).component for name in names]
    return {table for component in components if isinstance(component, Transform) for table in component.looks_into}
